"""Time of matchers, rewards and parsers on 32K-token responses; matchers' hits on real text.

One design choice: time is this thread's CPU time and the two sides of a ratio take turns, so that a
busy machine moves both alike; a ratio is a median over the turns.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rewards.base import Reward
from rewards.entities import EntityMatcher
from rewards.entities_legacy import LegacyMatcher, legacy_normalise
from rewards.outcome import OutcomeConfig, choice_letter, exact_match, make_outcome, token_f1
from rewards.parsing.answers import extract_answer
from rewards.parsing.chunk_ids import chunk_ids
from rewards.parsing.families import FAMILIES
from rewards.parsing.tags import find_blocks, one_block
from rewards.parsing.thinking import parse_response
from rewards.registry import build_reward
from rewards.types import Response, Task

CHARACTERS, DEGENERATE, TURNS = 130_000, 160_000, 31
DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
PASSAGES = 3_000
REPEATED = (
    *(
        "\\boxed{",
        "{",
        "}",
        "\\text{",
        " ",
        "\n",
        "a",
        "é",
        "答",
        "é",
        "e\u0301",
        "\u0301",
        "\ud800",
    ),
    *("<useful_chunks>", "</useful_chunks>", "<answer>", "</answer>", "<think>", "</think>"),
    *("<CHUNK_", "<CHUNK_1>", "1", "<", "<|", "<｜", "<|im_end|>", "answer is ", "option:  "),
    *("(", "(A)", "A", "the ", "*", "'", "+", "#", "a+", "a+ ", "éa", "aé ", "東a", "हि", "ﬁ "),
)
ONCE = (
    *("\\boxed{" + "{" * DEGENERATE, "\\boxed" + " " * DEGENERATE, "answer" + " " * DEGENERATE),
    *("<answer>" * 9_000 + "</answer>" * 9_000, "<CHUNK_" + "9" * DEGENERATE + ">"),
    "a" + "+" * DEGENERATE + "b",
)


def turns(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float, float]:
    """Median milliseconds of both sides and the median of their ratio, warmed and in turn."""
    for _ in range(3):
        first()
        second()
    times: list[tuple[float, float]] = []
    for _ in range(TURNS):
        start = time.thread_time()
        first()
        middle = time.thread_time()
        second()
        times.append((middle - start, time.thread_time() - middle))
    own, other = (statistics.median(side) * 1e3 for side in zip(*times, strict=True))
    return own, other, statistics.median(a / b for a, b in times)


def prose(seed: int = 0) -> tuple[str, list[str]]:
    """130,000 characters of sentences over 8,000 words with a long tail, and 200 names, half of
    which occur. One word in 60 has an accent, another script or a typographic mark."""
    rng = random.Random(seed)
    syllables = [c + v + e for c in "bdfgklmnprstvz" for v in "aeiou" for e in ("", "n", "r", "s")]
    vocabulary = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(8_000)]
    odd = ["café", "Müller", "Łódź", "“quoted”", "—", "O’Neil", "Москва", "東京", "naïve", "São"]
    names = [" ".join(rng.sample(vocabulary, rng.randint(1, 3))).title() for _ in range(200)]
    weights = [1 / (rank + 10) for rank in range(len(vocabulary))]
    words, size = [], 0
    while size < CHARACTERS:
        word = rng.choices(vocabulary, weights)[0]
        roll = rng.random()
        if roll < 1 / 60:
            word = rng.choice(odd)
        elif roll < 1 / 40:
            word = rng.choice(names[:100])
        elif roll < 1 / 8:
            word += rng.choice([".", ",", ";", "\n\n", " (3)", " 1984"])
        words.append(word)
        size += len(word) + 1
    return " ".join(words)[:CHARACTERS], names


def bench_matchers(text: str, names: list[str]) -> None:
    for count in (8, 100):
        entities = [(name,) for name in names[100 - count // 2 : 100 + count // 2]]
        correct, legacy = EntityMatcher(entities), LegacyMatcher(entities)
        own, other, ratio = turns(partial(correct.hits, text), partial(legacy.hits, text))
        print(f"figure matcher_correct_{count}_ms {own:.3f}")
        print(f"figure matcher_legacy_{count}_ms {other:.3f}")
        print(f"figure matcher_ratio_{count} {ratio:.3f}")


def bench_rewards(text: str, names: list[str]) -> None:
    """Whole rewards, the text standing in the content; a rubric with the legacy matcher beside."""
    cited = " ".join(f"<CHUNK_{n}>" for n in range(20))
    response = Response(
        f"plan</think>{text}<useful_chunks>{cited}</useful_chunks><answer>Paris</answer>"
    )
    outcome = make_outcome(OutcomeConfig())

    def make(kind: str, **config: object) -> Reward:
        return build_reward(kind, config, FAMILIES["qwen3"], outcome)

    with asyncio.Runner() as runner:

        def scoring(reward: Reward, task: Task) -> Callable[[], object]:
            return lambda: runner.run(reward.score(task, response))

        for count in (8, 100):
            entities = tuple((name,) for name in names[100 - count // 2 : 100 + count // 2])
            task = Task("t", "q", "Paris", gold_entities=entities)
            cites = Task("t", "q", "Paris", gold_chunks=tuple(range(count)))
            legacy = scoring(make("rubric", matcher="legacy"), task)
            own, _, ratio = turns(scoring(make("rubric"), task), legacy)
            print(f"figure rubric_reward_{count}_ms {own:.3f}")
            print(f"figure rubric_reward_ratio_{count} {ratio:.3f}")
            own, _, _ = turns(scoring(make("chunk"), cites), legacy)
            print(f"figure chunk_reward_{count}_ms {own:.3f}")


def bench_parsers() -> None:
    """The slowest degenerate text of each parser, best of three so that a pause is not counted."""
    matcher = EntityMatcher([("Ur",), ("New York",), ("Łódź",), ("東京",)])
    parsers: dict[str, Callable[[str], object]] = {
        f"thinking_{name}": lambda text, family=family: parse_response(Response(text), family)
        for name, family in FAMILIES.items()
    } | {
        "find_blocks": lambda text: find_blocks(text, "answer"),
        "one_block": lambda text: one_block(text, "useful_chunks"),
        "chunk_ids": chunk_ids,
        "extract_answer": extract_answer,
        "choice_letter": lambda text: choice_letter(text, "ABCD"),
        "exact_match": lambda text: exact_match(text, "x"),
        "token_f1": lambda text: token_f1(text, "x y"),
        "entities": matcher.hits,
    }
    texts = [(piece * (DEGENERATE // len(piece) + 1))[:DEGENERATE] for piece in REPEATED]
    worst_of_all = 0.0
    for name, parser in parsers.items():
        worst = max(best_of_three(parser, text) for text in (*texts, *ONCE))
        worst_of_all = max(worst_of_all, worst)
        print(f"figure parser_{name}_worst_ms {worst:.2f}")
    print(f"figure parser_worst_ms {worst_of_all:.2f}")


def best_of_three(parser: Callable[[str], object], text: str) -> float:
    """Milliseconds."""
    times = []
    for _ in range(3):
        start = time.thread_time()
        parser(text)
        times.append(time.thread_time() - start)
    return min(times) * 1e3


def why_they_differ(name: str, text: str, legacy_hit: bool) -> str:
    """The rule by which exactly one matcher finds `name`; "unexplained" where none applies."""
    normal, needle = legacy_normalise(text), legacy_normalise(name)
    if not legacy_hit:
        return "legacy_keeps_underscore" if "_" in text else "unexplained"
    if not needle:
        return "legacy_name_is_empty"
    if f" {needle} " not in f" {normal} ":
        return "not_whole_word"
    if not name.isascii():
        return "accent_or_script_lost_in_name"
    marked = "".join(c if c.isascii() or not c.isalpha() else "x" for c in text)
    if f" {needle} " not in f" {legacy_normalise(marked)} ":
        return "accent_or_script_lost_in_text"
    return "unexplained"


def bench_real_text() -> None:
    """Hop answers of 60 MuSiQue questions against 3,000 passages of 2WikiMultiHopQA."""
    questions, corpus = DATA / "musique_60.jsonl", DATA / "2wiki_corpus.jsonl"
    if not (questions.is_file() and corpus.is_file()):
        print(f"skipped: real text, because {DATA} does not hold {questions.name}, {corpus.name}")
        return
    rows = [json.loads(line) for line in questions.read_text().splitlines()]
    hops = (hop["answer"] for row in rows for hop in row["question_decomposition"])
    names = list(dict.fromkeys(hops))
    passages = [json.loads(line) for line in corpus.read_text().splitlines()[:PASSAGES]]
    correct, legacy = EntityMatcher([[n] for n in names]), LegacyMatcher([[n] for n in names])
    found: Counter[str] = Counter(correct=0, legacy=0, unexplained=0)
    for passage in passages:
        text = f"{passage['title']}\n{passage['text']}"
        hits = zip(names, correct.hits(text), legacy.hits(text), strict=True)
        for name, own, old in hits:
            found["correct"] += own
            found["legacy"] += old
            if own != old:
                found[why_they_differ(name, text, old)] += 1
    print(f"figure real_text_names {len(names)}")
    for reason, count in found.items():
        print(f"figure real_text_{reason} {count}")


def main() -> None:
    text, names = prose()
    bench_matchers(text, names)
    bench_rewards(text, names)
    bench_parsers()
    bench_real_text()


if __name__ == "__main__":
    main()
