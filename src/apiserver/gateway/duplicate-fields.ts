import { endOfJsonString, parseJson } from '../../values/index.ts';

/** Maximum number of duplicate fields in a message. */
const MAX_NAMED = 100;

const QUOTE = 0x22;
const COMMA = 0x2c;

/** An open object or list during the scan. */
interface Level {
  /** The keys of an object so far; undefined for lists. */
  readonly keys: Set<string> | undefined;
  /** The current key or index. */
  at: string | number;
  /** Whether the next string is a key. */
  isKeyNext: boolean;
}

/**
 * The paths of duplicate fields in a JSON text, as API servers write them: `spec.containers[0].name`. A scan of the text
 * finds them, because JSON.parse silently keeps the last value. The text must be valid JSON.
 */
export function duplicateFields(text: string): readonly string[] {
  const found = new Set<string>();
  const levels: Level[] = [];
  for (let at = 0; at < text.length && found.size < MAX_NAMED; at++) {
    const level = levels.at(-1);
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = endOfJsonString(text, at);
        if (level?.isKeyNext === true) {
          readKey(parseJson(text.slice(at, end)) as string, level, levels, found);
        }
        at = end - 1;
        break;
      }
      case 0x7b:
        levels.push({ keys: new Set(), at: '', isKeyNext: true });
        break;
      case 0x5b:
        levels.push({ keys: undefined, at: 0, isKeyNext: false });
        break;
      case 0x7d:
      case 0x5d:
        levels.pop();
        break;
      case COMMA:
        if (level !== undefined) {
          level.isKeyNext = level.keys !== undefined;
          level.at = typeof level.at === 'number' ? level.at + 1 : level.at;
        }
        break;
      default:
    }
  }
  return [...found];
}

function readKey(key: string, level: Level, levels: readonly Level[], found: Set<string>): void {
  level.at = key;
  level.isKeyNext = false;
  if (level.keys?.has(key) === true) {
    found.add(pathOf(levels));
  }
  level.keys?.add(key);
}

function pathOf(levels: readonly Level[]): string {
  return levels.reduce(
    (path, { at }) => (typeof at === 'number' ? `${path}[${at}]` : path === '' ? at : `${path}.${at}`),
    '',
  );
}
