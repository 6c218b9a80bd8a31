// Links that carry a program: its text, compressed, after the `#` of the address.

const KEY = "#program=";
const MOST = 1 << 20; // bytes of a program that a link may unfold to

async function through(stream, bytes, most = Infinity) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw new Error("the program in the link is too long");
    }
    parts.push(value);
  }
}

export async function fragment(program) {
  const packed = await through(
    new CompressionStream("deflate-raw"),
    new TextEncoder().encode(program),
  );
  const text = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""));
  return KEY + text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

// The program of a link; null if it carries none.
export async function programOf(hash) {
  if (!hash.startsWith(KEY)) return null;
  const text = atob(hash.slice(KEY.length).replaceAll("-", "+").replaceAll("_", "/"));
  const packed = Uint8Array.from(text, (character) => character.charCodeAt(0));
  const program = await through(new DecompressionStream("deflate-raw"), packed, MOST);
  return new TextDecoder("utf-8", { fatal: true }).decode(program).replaceAll(/\r\n?/g, "\n");
}
