import { quote } from '../../go/index.ts';

/** The elements of a list in CEL. */
export function quotedList(texts: readonly string[]): string {
  return texts.map((text) => quote(text)).join(', ');
}
