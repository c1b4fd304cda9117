"""The language of the programs: what it accepts, and that it means what Python means."""

import contextlib
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.learning_to_execute_language import CHARACTERS, run
from ut_keras.errors import UserError


def python(program):
    """What Python prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program.replace("#", "\n"), {})
    return out.getvalue()


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("print(12+34)", 46),
        ("print((8*2))", 16),
        ("print((5 if 10<9 else 7))", 7),
        ("print(((3-10) if 2>1 else 7))", -7),
        ("e=5;#print((e+2))", 7),
        ("j=10#for x in range(4):j-=4#print(j)", -6),
        ("a=1#for x in range(3):a+=a#print(a)", 8),
        ("j=8584#for x in range(8):j+=920#b=(1500+j)#print((b+7567))", 25011),
        ("a=0#a=7#print(a)", 7),
    ],
)
def test_value_is_what_python_prints(program, value):
    assert run(program) == value
    assert python(program) == f"{value}\n"


@pytest.mark.parametrize(
    "program",
    [
        "",
        "print(1",
        "print(1))",
        "print(1)#",
        "print(1)print(1)",
        "print()",
        "print( 1)",
        "print(1 + 2)",
        "print(1+2+3)",
        "print(1++2)",
        "print(-1)",
        "print(007)",
        "print(1_0)",
        "print(0x1)",
        "print(1.5)",
        "print(\u0663)",
        "print(k)",
        "print(x)",
        "print(aa)",
        "print(1\n)",
        "a=1\nprint(a)",
        "a=1;print(a)",
        "a=1##print(a)",
        "a=1;;#print(a)",
        "1=a#print(1)",
        "a*=2#print(a)",
        "for x in range(2):a=1#print(1)",
        "for x in range(a):a+=1#print(1)",
        "print(9ifa>1else2)",
        "print(1 if 1>2 else)",
        "print(1 if 1==2 else 3)",
        "print(1>2)",
        "print(1//2)",
        "__import__('os')",
        "print(open)",
    ],
)
def test_text_outside_of_the_language_is_refused(program):
    with pytest.raises(UserError, match="^not a program of the language, at character [0-9]+ "):
        run(program)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("print(a)", "uses a before it has a value"),
        ("a=b#print(1)", "uses b before it has a value"),
        ("for x in range(2):c+=1#print(c)", "uses c before it has a value"),
        ("a=1#for x in range(0):a+=1#print(a)", "loop of 0 rounds; 1 to 10000"),
        ("a=1#for x in range(10001):a+=1#print(a)", "loop of 10001 rounds"),
        ("a=2#for x in range(400):a+=(a*a)#print(a)", "more than 100 digits"),
        ("print(" + "(" * 51 + "1" + ")" * 52, "nests more than 50 parentheses"),
    ],
)
def test_program_that_cannot_be_run_says_why(program, message):
    with pytest.raises(UserError, match=message):
        run(program)


def test_error_points_at_the_place():
    with pytest.raises(UserError, match=r"at character 9 \('\+'\): 'print\(1\+\+2\)'"):
        run("print(1++2)")
    with pytest.raises(UserError, match=r"at character 8 \(its end\)"):
        run("print(1")


OPERANDS = st.recursive(
    st.one_of(st.integers(0, 999).map(str), st.sampled_from("ab")),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda parts: f"({''.join(parts)})"),
        st.tuples(inner, inner, st.sampled_from("<>"), inner, inner).map(
            lambda parts: f"({parts[0]} if {parts[1]}{parts[2]}{parts[3]} else {parts[4]})"
        ),
    ),
    max_leaves=8,
)
LINES = st.one_of(
    st.tuples(st.sampled_from("abc"), OPERANDS, st.sampled_from(["", ";"])).map(
        lambda parts: f"{parts[0]}={parts[1]}{parts[2]}#"
    ),
    st.tuples(st.integers(1, 5), st.sampled_from("ab"), st.sampled_from("+-"), OPERANDS).map(
        lambda parts: f"for x in range({parts[0]}):{parts[1]}{parts[2]}={parts[3]}#"
    ),
)


@settings(deadline=None, max_examples=150)
@given(lines=st.lists(LINES, max_size=4), last=OPERANDS)
def test_any_program_means_what_python_means(lines, last):
    program = "a=3#b=7;#" + "".join(lines) + f"print({last})"
    assert set(program) <= set(CHARACTERS)
    try:
        value = run(program)
    except UserError as error:
        assert "more than 100 digits" in str(error)
    else:
        assert python(program) == f"{value}\n"


@settings(deadline=None, max_examples=300)
@given(text=st.text(st.sampled_from(CHARACTERS), max_size=12))
def test_any_text_is_run_or_refused(text):
    program = f"print({text})"
    with contextlib.suppress(UserError):
        value = run(program)
        assert python(program) == f"{value}\n"
