"""Places: order, cancellation, and loops that end while their tasks wait."""

from __future__ import annotations

import asyncio

from rewards.judge.places import Places


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_line_is_served_in_order_and_a_retry_goes_first() -> None:
    places = Places(1)
    await places.acquire()
    served: list[str] = []

    async def wait(name: str, first: bool = False) -> None:
        await places.acquire(first=first)
        served.append(name)
        places.release()

    tasks = [asyncio.create_task(wait(name)) for name in ("a", "b")]
    await settle()
    tasks.append(asyncio.create_task(wait("retry", first=True)))
    await settle()
    places.release()
    await asyncio.gather(*tasks)
    assert served == ["retry", "a", "b"]
    assert places.held == 0


async def test_a_place_handed_to_a_cancelled_task_goes_on_to_the_next() -> None:
    places = Places(1)
    await places.acquire()
    first = asyncio.create_task(places.acquire())
    second = asyncio.create_task(places.acquire())
    await settle()
    places.release()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await asyncio.wait_for(second, timeout=5)
    assert places.held == 1


async def test_a_task_cancelled_in_line_leaves_it() -> None:
    places = Places(1)
    await places.acquire()
    waiting = asyncio.create_task(places.acquire())
    await settle()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    places.release()
    assert places.held == 0


def test_a_task_of_a_closed_loop_is_passed_over() -> None:
    places = Places(1)
    abandoned = asyncio.new_event_loop()
    abandoned.run_until_complete(places.acquire())
    task = abandoned.create_task(places.acquire())
    abandoned.run_until_complete(settle())
    abandoned.close()
    places.release()
    assert places.held == 0
    asyncio.run(asyncio.wait_for(places.acquire(), timeout=5))
    assert not task.done()
    task.get_coro().close()
