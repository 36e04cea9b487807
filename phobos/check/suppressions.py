"""Comments that silence a rule at one place, and what is wrong with those comments themselves (PH901-PH903).

`// phobos: ignore[PH203] reason` stands at the end of a line or alone on the line above a statement;
`// phobos: ignore-file[PH601]` at the top of the file. A comment that was meant for us and says nothing we know is
told here, too: it looks like one that works.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from phobos.check import registry
from phobos.diagnostic import Diagnostic, Edit, Fix, Span
from phobos.syntax import tree
from phobos.syntax.lines import LineIndex
from phobos.syntax.pragmas import Pragma, pragmas
from phobos.value import value

MARK = "phobos"  # in any case of letters
WORDS = ("ignore", "ignore-file", "assume")
MENDED = frozenset(("PH001", "PH002", "PH003", "PH005", "PH901", "PH902", "PH903"))
"""No suppression of these is offered: what does not parse, and what is wrong with a suppression itself, is mended."""


@value
class Word:
    """One code or name in a suppression; `code` is None where no rule is called so."""

    text: str
    code: str | None
    start: int
    end: int


@value
class Suppression:
    """One comment. It covers rows `first` to `last`, or the whole file; `trailing` stands after code on its line.
    One alone on its line covers the comments below it, which may say something themselves, and the next statement.

    `broken`: some of what it covers did not parse and was not looked at, so nobody can say that it is not needed.
    """

    start: int
    end: int
    words: tuple[Word, ...]
    blanket: bool
    whole_file: bool
    trailing: bool
    first: int
    last: int
    broken: bool


class Suppressions:
    """All suppressions of a file, and which of their words silenced something."""

    def __init__(self, path: str, text: str, lines: LineIndex, file: tree.File) -> None:
        self.path = path
        self.text = text
        self.lines = lines
        self.file = file
        self.strange: list[tuple[int, Pragma]] = []  # comments that say nothing, each with the start of its item
        self.found = tuple(self._read()) if MARK in text.lower() else ()
        self.used: set[Word] = set()

    def keep(self, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Those that no comment silences."""
        if not self.found:
            return list(diagnostics)
        return [diagnostic for diagnostic in diagnostics if not self._silences(diagnostic)]

    def _silences(self, diagnostic: Diagnostic) -> bool:
        row = self.lines.line_of(diagnostic.span.start)
        last = self.lines.line_of(max(diagnostic.span.start, diagnostic.span.end - 1))
        silenced = False
        for suppression in self.found:
            inside = suppression.whole_file or suppression.first <= row <= suppression.last
            inside = inside or (suppression.trailing and suppression.last == last)
            if not inside:
                continue
            for word in suppression.words:
                if word.code == diagnostic.code:
                    self.used.add(word)
                    silenced = True
        return silenced

    def findings(self, enabled: frozenset[str]) -> list[Diagnostic]:
        """PH901, PH902 and PH903 of the file. To be asked after every `keep`."""
        out = [self._strange(pragma, offset) for offset, pragma in self.strange]
        for suppression in self.found:
            if suppression.blanket:
                out.append(self._blanket(suppression))
            unknown = [word for word in suppression.words if word.code is None]
            out += [self._unknown(word) for word in unknown]
            unused = [
                word
                for word in suppression.words
                if word.code is not None and word.code in enabled and word not in self.used and word.code != "PH901"
            ]
            if unused and not suppression.broken and not any(word.code == "PH901" for word in suppression.words):
                out.append(self._unused(suppression, unused))
        return self.keep(diagnostic for diagnostic in out if diagnostic.code in enabled)

    # --- reading --------------------------------------------------------------------------------------

    def _read(self) -> Iterator[Suppression]:
        extents: dict[int, int] | None = None
        unread = any(item.problems for _, item in self.file.items)
        for offset, item in self.file.items:
            for pragma in pragmas(item.comments):
                if pragma.kind in ("unknown", "misaddressed") and pragma.words:
                    self.strange.append((offset, pragma))
                if pragma.kind not in ("ignore", "ignore-file"):
                    continue
                start = offset + pragma.start
                row = self.lines.line_of(start)
                first = last = row
                trailing = bool(self.text[self.lines.starts[row] : start].strip())
                if not trailing and pragma.kind == "ignore":  # alone on its line: it speaks of the next statement
                    if extents is None:
                        extents = self._extents()
                    following = self._next_row(row)
                    first, last = min(row + 1, following), extents.get(following, following)
                whole, words = pragma.kind == "ignore-file", tuple(self._words(pragma, offset))
                broken = unread if whole else bool(item.problems)
                yield Suppression(
                    start, offset + pragma.end, words, pragma.is_blanket, whole, trailing, first, last, broken
                )

    def _words(self, pragma: Pragma, offset: int) -> Iterator[Word]:
        for word in pragma.words:
            yield Word(word.text, registry.code_of(word.text), offset + word.start, offset + word.end)

    def _next_row(self, row: int) -> int:
        rows = len(self.lines.starts)
        for later in range(row + 1, rows):
            line = self.lines.line_text(later).strip()
            if line and not line.startswith("//"):
                return later
        return row

    def _extents(self) -> dict[int, int]:
        """The last row of what begins on a row: a statement, the head of a loop or branch, an attribute."""
        extents: dict[int, int] = {}

        def note(offset: int, start: int, end: int) -> None:
            row = self.lines.line_of(offset + start)
            last = self.lines.line_of(offset + max(start, end - 1))
            extents.setdefault(row, last)

        for offset, item in self.file.items:
            node = item.node
            if node is None:
                continue
            if isinstance(node, tree.Kernel):
                for attribute in node.attributes:
                    note(offset, attribute.start, attribute.end)
            note(offset, node.name.start, node.body.start)
            stack: list[tree.Stmt] = [node.body]
            while stack:
                statement = stack.pop()
                match statement:
                    case tree.Block(statements=inner):
                        stack.extend(inner)
                        continue
                    case tree.If(then=then, otherwise=otherwise):
                        note(offset, statement.start, then.start + 1)
                        stack.append(then)
                        if otherwise is not None:
                            stack.append(otherwise)
                    case tree.For(body=body) | tree.While(body=body):
                        note(offset, statement.start, body.start + 1)
                        stack.append(body)
                    case _:
                        note(offset, statement.start, statement.end)
        return extents

    # --- what is wrong with the comments ---------------------------------------------------------------

    def _at(self, code: str, start: int, end: int, message: str, label: str, help: str, fix: Fix | None) -> Diagnostic:
        return registry.rule(code).at(Span(self.path, start, end), message, label=label, help=help, fix=fix)

    def _unused(self, suppression: Suppression, unused: list[Word]) -> Diagnostic:
        listed = ", ".join(word.text for word in unused)
        left = [word.text for word in suppression.words if word not in unused]
        if left:
            inside = self.text.index("[", suppression.start) + 1
            edit = Edit(Span(self.path, inside, self.text.index("]", inside)), ", ".join(left))
        else:
            edit = self._removal(suppression)
        where = "in this file" if suppression.whole_file else "here"
        start, end = (unused[0].start, unused[-1].end) if left else (suppression.start, suppression.end)
        return self._at(
            "PH901", start, end, f"nothing {where} needs this suppression of {listed}", "silences nothing",
            "remove it, so that the next finding is seen", Fix("remove the suppression", "safe", (edit,)),
        )  # fmt: skip

    def _removal(self, suppression: Suppression) -> Edit:
        """Takes out the comment up to the end of its line, and the line when nothing else stands on it."""
        start, end = self.lines.without(suppression.start, self.lines.line_end(self.lines.line_of(suppression.start)))
        return Edit(Span(self.path, start, end), "")

    def _unknown(self, word: Word) -> Diagnostic:
        near = registry.nearest(word.text)
        fix = None
        help = "`phobos rule --all` lists the rules"
        if near is not None:
            help = f"did you mean `{near}`?"
            fix = Fix(f"write `{near}`", "unsafe", (Edit(Span(self.path, word.start, word.end), near),))
        return self._at(
            "PH902", word.start, word.end, f"no rule is called `{word.text}`", "this silences nothing", help, fix
        )

    def _strange(self, pragma: Pragma, offset: int) -> Diagnostic:
        from difflib import get_close_matches

        (word,) = pragma.words
        start, end, written, fix = word.start, word.end, word.text, None
        help = "what may stand here: `ignore[PH203]`, `ignore-file[PH203]`, `assume uniform(x)`"
        if pragma.kind == "misaddressed":
            message, written = f"`{written}` does not speak to Phobos", "// phobos:"
            help = "write `// phobos:`, in small letters and with the colon"
        elif word.text == "assume":
            message, end = "`assume` takes `uniform(x)`, and `x` is the name of one variable", pragma.end
        else:
            message = f"`{word.text}` after `// phobos:` means nothing"
            written = next(iter(get_close_matches(word.text.lower(), WORDS, 1, 0.7)), word.text)
            help = f"did you mean `{written}`?" if written != word.text else help
        if written != word.text:
            fix = Fix(f"write `{written}`", "unsafe", (Edit(Span(self.path, offset + start, offset + end), written),))
        return self._at("PH902", offset + start, offset + end, message, "nobody reads this comment", help, fix)

    def _blanket(self, suppression: Suppression) -> Diagnostic:
        return self._at(
            "PH903", suppression.start, suppression.end, "a suppression must name its rules",
            "this silences nothing",
            "write the codes in brackets and the reason after them: `// phobos: ignore[PH203] one block only`",
            None,
        )  # fmt: skip
