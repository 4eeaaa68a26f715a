// Follows the path of a JSON patch through the schema of a kind.
import { nearestKey } from '../../../values/index.ts';
import type { MergeType } from '../../../resources/structured-merge/index.ts';
import type { ConstantText } from './constant-text.ts';

/** What is wrong with a path. */
interface PointerProblem {
  readonly message: string;
  /** Whether the operation fails for every object; otherwise what it adds is dropped. */
  readonly isFatal: boolean;
}

/** Where a path leads. */
export interface PointedField {
  readonly problem?: PointerProblem;
  /** The type at the end of a path that is known completely. */
  readonly type?: MergeType;
}

/** @param pointer the path, or its beginning */
export function pointedField(
  pointer: ConstantText,
  op: string,
  kind: string | undefined,
  root: MergeType,
): PointedField {
  const { text, isWhole } = pointer;
  if (text === '') {
    return {};
  }
  if (!text.startsWith('/')) {
    return { problem: fatal(`the path "${text}" does not begin with "/": write "${slashed(text)}"`) };
  }
  const segments = text.slice(1).split('/').map(unescaped);
  // The last one may go on.
  const known = isWhole ? segments : segments.slice(0, -1);
  let type = root;
  for (const [index, segment] of known.entries()) {
    const isLast = index === segments.length - 1;
    const step = follow(type, segment, { path: segments, index, isLast, op, kind });
    if (step === undefined || 'message' in step) {
      return step === undefined ? {} : { problem: step };
    }
    type = step.type;
  }
  if (isWhole) {
    return { type };
  }
  const isInsideOfScalar = known.length > 0 && isScalar(type);
  return isInsideOfScalar ? { problem: fatal(insideOfScalar(segments, known.length)) } : {};
}

function isScalar({ scalar, map, list }: MergeType): boolean {
  return map === undefined && list === undefined && scalar !== 'untyped';
}

interface Step {
  readonly path: readonly string[];
  readonly index: number;
  readonly isLast: boolean;
  readonly op: string;
  readonly kind: string | undefined;
}

/** The type below a type; undefined where it is not known. */
function follow(
  type: MergeType,
  segment: string,
  step: Step,
): { readonly type: MergeType } | PointerProblem | undefined {
  if (type.scalar === 'untyped' || type.map?.isDeduced === true) {
    return undefined;
  }
  if (type.map !== undefined) {
    const below = type.map.field(segment);
    return below === undefined ? unknownField(step) : { type: below };
  }
  return type.list === undefined
    ? fatal(insideOfScalar(step.path, step.index))
    : element(type.list.element(), segment, step);
}

function element(
  type: MergeType,
  segment: string,
  { path, index, isLast, op }: Step,
): { readonly type: MergeType } | PointerProblem {
  const isIndex = /^(?:-?\d+)$/u.test(segment);
  const mayEnd = isLast && (op === 'add' || op === 'copy' || op === 'move');
  const isEnd = segment === '-' && mayEnd;
  return isIndex || isEnd
    ? { type }
    : fatal(
        `${pointerOf(path, index)} is a list: expected an index${mayEnd ? ', or "-" to add at its end' : ''}, got "${segment}"`,
      );
}

const SETS: ReadonlySet<string> = new Set(['add', 'copy', 'move', 'replace']);

/** Not fatal: a newer release of Kubernetes may have the field. */
function unknownField({ path, index, op, kind, isLast }: Step): PointerProblem {
  const what = `${kind ?? 'the object'} has no field ${pointerOf(path, index + 1)}`;
  // API servers add a field that they are told to replace.
  const effect = isLast && SETS.has(op) ? 'API servers drop what is added' : 'the operation fails';
  return { message: `${what}: ${effect}`, isFatal: false };
}

function insideOfScalar(path: readonly string[], index: number): string {
  const parent = pointerOf(path, index - 1);
  const key = path.slice(index - 1).join('/');
  return `${pointerOf(path, index)} is no object: in a key, write ~1 for "/", as in ${parent}/${escaped(key)}, or use jsonpatch.escapeKey('${key}')`;
}

/** The path that is meant by `metadata/labels`, `.metadata.labels` or `$.metadata.labels`. */
function slashed(text: string): string {
  const names = text.trim().replace(/^[$#]?[./]?/u, '');
  return `/${names.includes('/') ? names : names.replaceAll('.', '/')}`;
}

function pointerOf(path: readonly string[], length: number): string {
  return `/${path.slice(0, length).map(escaped).join('/')}`;
}

function unescaped(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~');
}

function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

function fatal(message: string): PointerProblem {
  return { message, isFatal: true };
}

/** `. Did you mean replace?` */
export function meantHint(text: string, known: readonly string[]): string {
  const nearest = nearestKey(text, known);
  return nearest === undefined ? `: expected one of ${known.join(', ')}` : `. Did you mean ${nearest}?`;
}
