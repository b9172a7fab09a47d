"""Texts of the built-in prompts; the braces are filled by `render`.

One design choice: the question and the instructions follow the context, so that a rollout engine
shares the cached prefix of one document between its questions.
"""

NUMBERED_CHUNKS = """\
The text below is cut into chunks. Each chunk starts with its marker.

{chunks}

Question: {question}

Work out the answer from the chunks, step by step. Then finish with exactly two blocks:
first the markers of all chunks your answer relies on, and no others, in the form
<useful_chunks><CHUNK_n>, <CHUNK_m></useful_chunks>
and then the answer alone, as short as it can be, in the form
<answer>...</answer>"""

DOCUMENTS = """\
Here are documents. Some bear on the question at the end, many do not.

{documents}

Answer the question from these documents. Reason about how their facts connect, naming the people,
places and things on the way, then give the final answer alone in the form
<answer>...</answer>

Question: {question}"""
