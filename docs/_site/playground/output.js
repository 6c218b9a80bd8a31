// The output of a command: colours as a terminal shows them, and codes that can be asked about.

const SEQUENCE = /\u001b\[([\d;]*)m/;
const CODE = /\b(PSC\d{3})\b/;

export function render(output, explain) {
  const box = document.createDocumentFragment();
  let classes = "";
  for (const [index, part] of output.split(SEQUENCE).entries()) {
    if (index % 2) {
      const styles = part.split(";").filter((each) => Number(each));
      classes = styles.map((each) => `pg-sgr-${each}`).join(" ");
    } else if (part) {
      const span = document.createElement("span");
      span.className = classes;
      span.append(...part.split(CODE).map((text, at) => (at % 2 ? asked(text, explain) : text)));
      box.append(span);
    }
  }
  return box;
}

function asked(code, explain) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "pg-code";
  button.title = `pscdsl explain ${code}`;
  button.textContent = code;
  button.onclick = () => explain(code);
  return button;
}
