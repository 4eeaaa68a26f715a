// How much the main thread takes from a thread that evaluates. It parses a result in one turn, and has its memory besides that of
// the thread, while a few lines of a template can make any amount of text, and the same part of a definition stands in each object.

/** Characters of a result: 20,000 plans of objects of 1 KB that all differ have nearly as many. */
const MAX_RESULT_CHARACTERS = 40_000_000;
/** Objects, lists and further values of a result: those plans have 1.8 million. Each can take 67 bytes of memory. */
const MAX_RESULT_VALUES = 2_000_000;

const [BRACE, BRACKET, COMMA] = ['{', '[', ','].map((character) => character.charCodeAt(0));

/** Whether a result is too large for the main thread. @param json brackets and commas in its strings count, too */
export function isTooLarge(json: string): boolean {
  return json.length > MAX_RESULT_CHARACTERS || valuesOf(json) > MAX_RESULT_VALUES;
}

function valuesOf(json: string): number {
  let count = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === COMMA || code === BRACE || code === BRACKET) {
      count += 1;
    }
  }
  return count;
}
