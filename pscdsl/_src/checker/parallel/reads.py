"""What the result of a check depends on, and whether that is still so."""

from __future__ import annotations

from dataclasses import dataclass

from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.modules.finding import Found, Question
from pscdsl._src.frontend.modules.project import Project


@dataclass(frozen=True)
class Reads:
    """Everything that the check of a file was told about other files."""

    contents: tuple[tuple[str, str], ...]
    """The files whose text mattered, and what stands for their content."""
    answers: tuple[tuple[Question, Found | None], ...]
    """The modules that were looked for and what was found, also where nothing was."""
    searches: tuple[tuple[str, str], ...]
    """What was asked of all files, and what stands for the answers; see `Files.answer_to`."""

    def hold(self, files: Files) -> bool:
        """Whether the check would be told the same today."""
        return (
            all(files.digest(path) == digest for path, digest in self.contents)
            and all(files.finder.find(question) == found for question, found in self.answers)
            and all(files.answer_to(name) == digest for name, digest in self.searches)
        )


def reads_of(project: Project, path: str) -> Reads:
    """What a check has read, by the modules that were made for it."""
    files = project.files
    modules = project.modules()
    questions = dict.fromkeys(question for module in modules for question in module.asked)
    answers = {question: files.finder.find(question) for question in questions}
    found = (answer.file for answer in answers.values() if answer is not None)
    paths = sorted({path, *project.by_path, *(file for file in found if file is not None)})
    names = sorted({name for module in modules for name in module.searched})
    return Reads(
        tuple((each, files.digest(each)) for each in paths),
        tuple(sorted(answers.items(), key=lambda item: (item[0].name, item[0].folders))),
        tuple((name, files.answer_to(name)) for name in names),
    )
