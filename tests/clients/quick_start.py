"""The README's quick start, run as written: its commands must work, and answer as the README says.

In the section "Try it" every `sh` block that calls curl is run as one script. A comment line below a command is what the
command answers; `…` in it stands for anything.
"""

import pathlib
import re
import subprocess

SECTION = re.compile(r"^## Try it$(.*?)^## ", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = "127.0.0.1:6632"


def quick_start(readme: pathlib.Path, address: str) -> None:
    section = SECTION.search(readme.read_text())
    assert section, "the README has no section called Try it"
    blocks = [block for block in BLOCK.findall(section.group(1)) if "curl " in block]
    assert blocks, "the README's quick start calls no curl"
    for block in blocks:
        for command, answer in steps(block):
            check(command, answer, address)
    print(f"quick start: {sum(len(steps(block)) for block in blocks)} commands answer as the README says")


def steps(block: str) -> list[tuple[str, str]]:
    """Commands, each with the answer it should get."""
    found, command = [], []
    for line in block.splitlines():
        if line.startswith("# "):
            found.append(("\n".join(command), line.removeprefix("# ")))
            command = []
        else:
            command.append(line)
    assert not "".join(command).strip(), f"the README does not show the answer of {command}"
    return found


def check(command: str, answer: str, address: str) -> None:
    assert ADDRESS in command, f"a command of the README uses another address: {command}"
    script = f"set -eu\n{command.replace(ADDRESS, address)}"
    ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=30)
    pattern = ".*?".join(re.escape(piece) for piece in answer.split("…"))
    answered = ran.stdout.strip()
    if ran.returncode != 0 or not re.fullmatch(pattern, answered, re.DOTALL):
        raise AssertionError(
            f"the README's quick start:\n{command}\nshould answer\n{answer}\nbut answered (status {ran.returncode})\n"
            f"{answered}\n{ran.stderr}"
        )
