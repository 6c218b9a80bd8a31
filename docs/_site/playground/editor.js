// The editor: Python, findings in place, the types of names under the pointer.

import { python } from "@codemirror/lang-python";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, WidgetType, hoverTooltip } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";

const colour = (name) => `var(--md-code-hl-${name}-color)`;

const highlighting = HighlightStyle.define([
  { tag: tags.keyword, color: colour("keyword") },
  { tag: [tags.string, tags.special(tags.string)], color: colour("string") },
  { tag: [tags.number, tags.bool, tags.null], color: colour("number") },
  { tag: tags.function(tags.definition(tags.variableName)), color: colour("function") },
  { tag: tags.comment, color: colour("comment"), fontStyle: "italic" },
  { tag: tags.meta, color: colour("name") },
]);

// The carets below a line, and what the finding says of them.
class Carets extends WidgetType {
  constructor(before, width, severity, text) {
    super();
    Object.assign(this, { before, width, severity, text });
  }

  eq(other) {
    return ["before", "width", "severity", "text"].every((key) => this[key] === other[key]);
  }

  toDOM() {
    const row = document.createElement("div");
    row.className = `pg-carets pg-${this.severity}`;
    row.textContent = `${this.before}${"^".repeat(this.width)} `;
    const said = document.createElement("span");
    said.textContent = this.text;
    row.append(said);
    return row;
  }
}

const setCarets = StateEffect.define();

const carets = StateField.define({
  create: () => Decoration.none,
  update(rows, transaction) {
    const given = transaction.effects.find((effect) => effect.is(setCarets));
    if (given) return Decoration.set(given.value, true);
    return transaction.docChanged ? Decoration.none : rows;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function caretsOf(document, { from, to, severity, code, message }) {
  const line = document.lineAt(from);
  const before = line.text.slice(0, from - line.from).replaceAll(/[^\t]/g, " ");
  const width = Math.max(1, Math.min(to, line.to) - from);
  const said = message.split("\n");
  const widget = new Carets(before, width, severity, `${code} ${said[1] ?? said[0]}`);
  return Decoration.widget({ widget, block: true, side: 1 }).range(line.to);
}

const SEVERITIES = { error: "error", warning: "warning", note: "info" };

function lint({ from, to, severity, code, message, help, fixes }) {
  return {
    from,
    to,
    severity: SEVERITIES[severity],
    source: code,
    message: help ? `${message}\nhelp: ${help}` : message,
    actions: fixes.map(({ title, edits }) => ({
      name: title,
      apply: (view) => view.dispatch({ changes: edits }),
    })),
  };
}

// Markdown as hovers have it: paragraphs, and code in fences.
function marked(text) {
  const box = document.createElement("div");
  box.className = "pg-hover";
  for (const [index, part] of text.split(/^```(?:\w*)\n?/m).entries()) {
    if (!part.trim()) continue;
    const element = document.createElement(index % 2 ? "pre" : "p");
    element.textContent = part.trim().replaceAll(/\*\*|`/g, "");
    box.append(element);
  }
  return box;
}

// The editor; `hover(program, offset)` answers with Markdown, `changed(program)` is told of edits.
export function editor(parent, program, { hover, changed }) {
  const view = new EditorView({
    doc: program,
    parent,
    extensions: [
      basicSetup,
      python(),
      indentUnit.of("    "),
      syntaxHighlighting(highlighting),
      lintGutter(),
      carets,
      EditorView.contentAttributes.of({ "aria-label": "The program" }),
      hoverTooltip(async (view, position) => {
        const program = view.state.doc.toString();
        const found = await hover(program, position);
        if (!found || view.state.doc.toString() !== program) return null;
        const word = view.state.wordAt(position);
        const [from, to] =
          found.from < found.to ? [found.from, found.to] : [word?.from ?? position, word?.to];
        return { pos: from, end: to, above: true, create: () => ({ dom: marked(found.text) }) };
      }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) changed(update.state.doc.toString());
      }),
    ],
  });
  return {
    program: () => view.state.doc.toString(),
    replace(text) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    // Show findings, unless the program has changed since they were found.
    show(program, findings) {
      if (view.state.doc.toString() !== program) return;
      const rows = findings.map((each) => caretsOf(view.state.doc, each));
      view.dispatch({ effects: setCarets.of(rows) });
      view.dispatch(setDiagnostics(view.state, findings.map(lint)));
    },
    select(from, to) {
      view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
      view.focus();
    },
  };
}
