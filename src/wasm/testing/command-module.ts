/** WASI commands assembled by hand, so that tests need no compiler. */

/** A function that the command imports, with `parameters` i32 parameters and, unless `isVoid`, an i32 result. */
export interface ImportedFunction {
  readonly module: string;
  readonly name: string;
  readonly parameters: number;
  readonly isVoid?: boolean;
}

/** A step of `_start`: calls an import with constants and drops its result, or inserts instructions as bytes. */
type Step = readonly [name: string, ...args: number[]] | Uint8Array;

/** Source of a command; its memory has one page. */
export interface CommandSource {
  readonly imports?: readonly ImportedFunction[];
  readonly steps: readonly Step[];
  readonly data?: readonly { readonly offset: number; readonly bytes: Uint8Array | string }[];
  /** Name of the exported entry function. Default: `_start`. */
  readonly entry?: string;
}

/** The instruction that traps. */
export const UNREACHABLE = Uint8Array.of(0x00);
/** An endless loop. */
export const ENDLESS_LOOP = Uint8Array.of(0x03, 0x40, 0x0c, 0x00, 0x0b);

const MAGIC_AND_VERSION = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

/** Assembles a module that exports `memory` and one function without parameters, which runs the steps in order. */
export function commandModule({ imports = [], steps, data = [], entry = '_start' }: CommandSource): Uint8Array {
  const types = [
    [0x60, 0, 0],
    ...imports.map(({ parameters, isVoid }) => [
      0x60,
      ...vector(Array.from({ length: parameters }, () => [0x7f])),
      ...(isVoid === true ? [0] : [1, 0x7f]),
    ]),
  ];
  const code = steps.flatMap((step) => (step instanceof Uint8Array ? [...step] : callImport(imports, step)));
  return Uint8Array.from([
    ...MAGIC_AND_VERSION,
    ...section(1, vector(types)),
    ...section(2, vector(imports.map(({ module, name }, i) => [...text(module), ...text(name), 0x00, i + 1]))),
    ...section(3, vector([[0]])),
    ...section(5, vector([[0, 1]])),
    ...section(
      7,
      vector([
        [...text('memory'), 2, 0],
        [...text(entry), 0, imports.length],
      ]),
    ),
    ...section(10, vector([sized([0, ...code, 0x0b])])),
    ...section(
      11,
      vector(data.map(({ offset, bytes }) => [0, ...constant(offset), 0x0b, ...sized([...Buffer.from(bytes)])])),
    ),
  ]);
}

function callImport(
  imports: readonly ImportedFunction[],
  [name, ...args]: readonly [string, ...number[]],
): readonly number[] {
  const index = imports.findIndex((candidate) => candidate.name === name);
  const isVoid = imports[index]?.isVoid === true;
  return [...args.flatMap(constant), 0x10, ...unsigned(index), ...(isVoid ? [] : [0x1a])];
}

function constant(value: number): readonly number[] {
  return [0x41, ...signed(value | 0)];
}

function section(id: number, content: readonly number[]): readonly number[] {
  return [id, ...sized(content)];
}

function text(value: string): readonly number[] {
  return sized([...Buffer.from(value)]);
}

function sized(content: readonly number[]): readonly number[] {
  return [...unsigned(content.length), ...content];
}

function vector(items: readonly (readonly number[])[]): readonly number[] {
  return [...unsigned(items.length), ...items.flat()];
}

function unsigned(value: number): readonly number[] {
  const bytes = [];
  let rest = value >>> 0;
  do {
    bytes.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    rest >>>= 7;
  } while (rest !== 0);
  return bytes;
}

function signed(value: number): readonly number[] {
  const bytes = [];
  let rest = value;
  for (;;) {
    const low = rest & 0x7f;
    rest >>= 7;
    const isLast = (rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0);
    bytes.push(isLast ? low : low | 0x80);
    if (isLast) {
      return bytes;
    }
  }
}
