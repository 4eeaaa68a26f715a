/** Fields whose keys are names with `-`, `.` and `/`. */
const MAP_FIELD =
  /^(.*?[.?](?:labels|annotations|matchLabels|nodeSelector|selector|data|binaryData|stringData|limits|requests|hard|capacity|allocatable|parameters))\.(.+)$/su;

/** A hint for an identifier that is a part of a key: `name` in `labels.app-name`. */
export interface KeyHint {
  readonly hint: string;
  /** Whether nothing else can be meant. */
  readonly isCertain: boolean;
}

/**
 * How a key with `-`, `.` or `/` is written, if the name at an offset is joined by one of these to a chain of fields. The parser
 * takes them for minus, a field, and a division.
 */
export function keyHint(text: string, offset: number): KeyHint | undefined {
  const before = /[A-Za-z_][\w.?]*(?:[-/][\w.?]+)*[-/]$/u.exec(text.slice(lineStart(text, offset), offset))?.[0];
  if (before === undefined || !before.includes('.')) {
    return undefined;
  }
  const after = /^\w+(?:[-./]\w+)*/u.exec(text.slice(offset))?.[0] ?? '';
  const isCall = text[offset + after.length] === '(';
  const path = before + (isCall ? after.slice(0, Math.max(0, after.lastIndexOf('.'))) : after);
  const [, map, key] = MAP_FIELD.exec(path) ?? [];
  if (map !== undefined && key !== undefined) {
    return { hint: hintOf(map, key), isCertain: true };
  }
  const [, owner = '', name = ''] = /^(.*?)\.\??([^.]*?[-/][^.]*)/su.exec(path) ?? [];
  return owner === '' ? undefined : { hint: hintOf(owner, name), isCertain: false };
}

function hintOf(map: string, key: string): string {
  const text = key.startsWith('?') ? `?'${key.slice(1)}'` : `'${key}'`;
  return `a key with -, . or / is written in brackets: ${map}[${text}]`;
}

function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1;
}
