"""Text from outside in Markdown: shown as it is, whatever it holds."""

import pytest
from markdown_it import MarkdownIt

from runners.report import markdown

PLANTED = [
    "</script><img src=x onerror=alert(1)>",
    "[here](javascript:alert(1)) ![x](http://elsewhere/x.png)",
    "a_b_c *d* `e` ~f~ $g$ {h} #i | j \\ k",
    "two\n\n# lines\n- of it",
    "&lt;b&gt; &amp; <b>",
    "``` </pre><script>alert(1)</script> ```",
]


def rendered(text):
    return MarkdownIt("commonmark").render(text)


def words(text):
    """What a reader sees, by the parser's own tokens."""
    tokens = MarkdownIt("commonmark").parse(text)
    assert [t.type for t in tokens] == ["paragraph_open", "inline", "paragraph_close"], tokens
    kinds = {child.type for child in tokens[1].children}
    return kinds, "".join(child.content for child in tokens[1].children)


@pytest.mark.parametrize("text", PLANTED)
def test_escaped_text_is_text_alone(text):
    kinds, seen = words(f"it said {markdown.escaped(text)}.")
    assert kinds <= {"text", "text_special"} and seen == f"it said {' '.join(text.split())}."


@pytest.mark.parametrize("text", PLANTED)
def test_a_code_span_holds_all_of_it(text):
    kinds, seen = words(f"at {markdown.code_span(text)} there")
    assert kinds == {"text", "code_inline"} and " ".join(text.split()) in seen


@pytest.mark.parametrize("text", ["--a '<|im_start|>' </s>", "x\n```\n<script>alert(1)</script>", "````\n```"])
def test_a_block_of_code_cannot_be_ended_from_inside(text):
    block = markdown.fenced(text, "bash")
    tokens = MarkdownIt("commonmark").parse(markdown.tagless(block))
    assert [t.type for t in tokens] == ["fence"] and tokens[0].content == f"{text}\n"


@pytest.mark.parametrize(
    "text",
    ["## <img src=x onerror=alert(1)>", "a <script>b</script>", "<!-- x --> y", "```\nx\n```\n<b>y</b>\n```\nz\n```"],
)
def test_no_sentence_brings_a_tag(text):
    found = rendered(markdown.tagless(text))
    assert "<img" not in found and "<script" not in found and "<!--" not in found and "<b>" not in found


def test_figures_are_not_touched():
    assert markdown.tagless("AL < r, 3 <= 4, a<3") == "AL < r, 3 <= 4, a<3"
