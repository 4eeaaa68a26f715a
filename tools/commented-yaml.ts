// Writes objects with comments (src/installation/objects/comments.ts) as YAML.
import { dump, load } from 'js-yaml';
import { COMMENT } from '../src/installation/objects/comments.ts';

/** The longest line with a comment. */
const MAX_COLUMNS = 118;
/** A comment as the first field of an object, which may be an element of a list, and the beginning of the next line. */
const FIELD = new RegExp(`^( *)(- )?'${COMMENT}': (.*)\n( *)`, 'gm');

/** YAML in which each comment is above the object that it is a field of, or above its first field. */
export function commentedYaml(value: unknown): string {
  const text = dump(value, { lineWidth: -1, noRefs: true });
  return text.replaceAll(
    FIELD,
    (_, indent: string, dash = '', quoted: string) => `${wrappedComment(String(load(quoted)), indent)}${indent}${dash}`,
  );
}

/** A wrapped comment, with a line break at its end. */
export function wrappedComment(text: string, indent: string): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < MAX_COLUMNS) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else {
      lines.push(`${indent}# ${word}`);
    }
  }
  return `${lines.join('\n')}\n`;
}
