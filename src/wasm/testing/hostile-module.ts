import fc from 'fast-check';
import { BinaryWriter } from '../binary/binary-writer.ts';
import { Op, ValueType } from '../binary/opcodes.ts';

/** What a module has too much of. */
export interface HostileShape {
  readonly functions: number;
  readonly parameters: number;
  /** What the parameters are, and the locals. */
  readonly values: 'i32' | 'reference';
  /** Calls that pass the results of each to the next one, and calls after the last instruction that is reached. */
  readonly calls: number;
  readonly unreachableCalls: number;
  /** Returns with as many values as there are parameters, after the last instruction that is reached. */
  readonly returns: number;
  readonly locals: number;
  /** Groups that declare one local each. */
  readonly localGroups: number;
  /** Operands below all blocks. */
  readonly operands: number;
  readonly blocks: 'block' | 'loop' | 'if';
  /** Blocks within each other, and one after the other. */
  readonly nesting: number;
  readonly sequence: number;
  /** Conditional branches in the innermost block. */
  readonly branches: number;
  /** Targets of a `br_table` in the innermost block. */
  readonly switchTargets: number;
  /** Stores at an address that is not known before they run. */
  readonly stores: number;
  readonly types: number;
  readonly imports: number;
  readonly exports: number;
  readonly globals: number;
  /** Additions in the initial value of a global. */
  readonly additions: number;
  readonly memoryPages: number;
  readonly tableEntries: number;
  readonly elements: number;
  readonly dataSegments: number;
  readonly dataBytes: number;
  readonly nameLength: number;
  readonly isStarted: boolean;
}

/** A small module that has nothing too much. */
export const HARMLESS: HostileShape = {
  functions: 1,
  parameters: 0,
  values: 'i32',
  calls: 0,
  unreachableCalls: 0,
  returns: 0,
  locals: 1,
  localGroups: 0,
  operands: 0,
  blocks: 'block',
  nesting: 0,
  sequence: 0,
  branches: 0,
  switchTargets: 0,
  stores: 0,
  types: 1,
  imports: 0,
  exports: 1,
  globals: 1,
  additions: 0,
  memoryPages: 1,
  tableEntries: 1,
  elements: 0,
  dataSegments: 0,
  dataBytes: 0,
  nameLength: 4,
  isStarted: false,
};

/** Largest value of each property in a generated shape, so that modules have at most about 1 MB. */
const EXTREMES = {
  functions: 20_000,
  parameters: 1_000,
  calls: 20_000,
  unreachableCalls: 100_000,
  returns: 100_000,
  locals: 49_000,
  localGroups: 20_000,
  operands: 30_000,
  nesting: 20_000,
  sequence: 40_000,
  branches: 20_000,
  switchTargets: 60_000,
  stores: 20_000,
  types: 50_000,
  imports: 20_000,
  exports: 20_000,
  globals: 20_000,
  additions: 50_000,
  memoryPages: 65_536,
  tableEntries: 10_000_000,
  elements: 50_000,
  dataSegments: 50_000,
  dataBytes: 300_000,
  nameLength: 100_000,
} as const;
type Extreme = keyof typeof EXTREMES;

/** More functions than this have small bodies. */
const MAX_CODE_BYTES = 1_000_000;

/** Shapes with up to four extremes, because costs multiply. */
export const HOSTILE_SHAPES: fc.Arbitrary<HostileShape> = fc
  .record({
    blocks: fc.constantFrom('block', 'loop', 'if'),
    values: fc.constantFrom('i32', 'reference'),
    isStarted: fc.boolean(),
    extremes: fc.uniqueArray(
      fc.record({
        name: fc.constantFrom(...(Object.keys(EXTREMES) as Extreme[])),
        share: fc.constantFrom(0.01, 0.1, 0.5, 1),
      }),
      { selector: ({ name }) => name, minLength: 1, maxLength: 4 },
    ),
  })
  .map(({ extremes, ...shape }) => ({
    ...HARMLESS,
    ...shape,
    ...Object.fromEntries(extremes.map(({ name, share }) => [name, Math.ceil(EXTREMES[name] * share)])),
  }));

/** The bytes of a module of this shape, valid but for limits of V8. Exports its first function as names of one length. */
export function hostileModule(shape: HostileShape, maxCodeBytes = MAX_CODE_BYTES): Uint8Array {
  const body = bodyOf(shape);
  const functions = Math.max(
    hasCalls(shape) ? 2 : 1,
    Math.min(shape.functions, Math.floor(maxCodeBytes / body.length)),
  );
  const out = new BinaryWriter().op(0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
  const section = (id: number, count: number, entry: (index: number, to: BinaryWriter) => void): void => {
    const content = new BinaryWriter().u32(count);
    for (let index = 0; index < count; index++) {
      entry(index, content);
    }
    out.op(id).sized(content.written);
  };
  const { i32, funcref } = ValueType;
  const value = valueOf(shape);
  section(1, shape.types + 1, (index, to) => {
    to.op(0x60);
    writeValues(to, value, index === 0 ? 0 : shape.parameters);
    writeValues(to, value, resultsOf(shape, index));
  });
  section(2, shape.imports, (index, to) => to.name('env').name(`${index}`).op(0).u32(0));
  section(3, functions, (index, to) => to.u32(index === 0 ? 0 : 1));
  section(4, 1, (_, to) => to.op(funcref, 0).u32(shape.tableEntries));
  section(5, 1, (_, to) => to.op(0).u32(shape.memoryPages));
  section(6, shape.globals, (_, to) => {
    to.op(i32, 1, Op.i32Const, 0);
    for (let count = shape.additions; count > 0; count -= shape.globals) {
      to.op(Op.i32Const, 1, Op.i32Add);
    }
    to.op(Op.end);
  });
  section(7, shape.exports, (index, to) =>
    to
      .name(`${index}`.padEnd(Math.ceil(shape.nameLength / shape.exports), 'x'))
      .op(0)
      .u32(shape.imports),
  );
  if (shape.isStarted) {
    out.op(8).sized(new BinaryWriter().u32(shape.imports).written);
  }
  section(9, 1, (_, to) => {
    to.op(0, Op.i32Const, 0, Op.end).u32(shape.elements);
    for (let index = 0; index < shape.elements; index++) {
      to.u32(shape.imports);
    }
  });
  section(10, functions, (_, to) => to.sized(body));
  section(11, shape.dataSegments, (_, to) => {
    to.op(0, Op.i32Const, 0, Op.end).sized(new Uint8Array(Math.ceil(shape.dataBytes / shape.dataSegments)));
  });
  return out.written;
}

/** A type of the shape's values: `i32`, or null or a function of type 0. */
function valueOf(shape: HostileShape): readonly number[] {
  return shape.values === 'i32' ? [ValueType.i32] : [ValueType.refNull, 0];
}

function writeValues(out: BinaryWriter, value: readonly number[], count: number): void {
  out.u32(count);
  for (let index = 0; index < count; index++) {
    out.op(...value);
  }
}

/** The first type is that of the first function, which is exported. */
function resultsOf(shape: HostileShape, type: number): number {
  if (type === 0) {
    return shape.returns > 0 ? shape.parameters : 0;
  }
  return hasCalls(shape) ? shape.parameters : 0;
}

function hasCalls({ calls, unreachableCalls }: HostileShape): boolean {
  return calls + unreachableCalls > 0;
}

function bodyOf(shape: HostileShape): Uint8Array {
  const out = new BinaryWriter();
  const value = valueOf(shape);
  const repeat = (count: number, ...bytes: number[]): void => {
    for (let index = 0; index < count; index++) {
      out.op(...bytes);
    }
  };
  const open = { block: [Op.block, 0x40], loop: [Op.loop, 0x40], if: [Op.i32Const, 0, Op.if, 0x40] }[shape.blocks];
  out.u32(shape.localGroups + 1);
  repeat(shape.localGroups, 1, ...value);
  out.u32(shape.locals).op(...value);
  repeat(shape.operands, Op.i32Const, 0);
  repeat(shape.nesting, ...open);
  repeat(shape.sequence, ...open, Op.end);
  for (let index = 0; index < shape.branches; index++) {
    out.op(Op.i32Const, 0, Op.brIf).u32(index % (shape.nesting + 1));
  }
  // An address that was loaded: no local holds it.
  repeat(shape.stores, Op.i32Const, 0, 0x28, 2, 0, Op.i32Const, 0, Op.i32Store, 2, 0);
  if (shape.switchTargets > 0) {
    out.op(Op.i32Const, 0, Op.brTable).u32(shape.switchTargets);
    for (let index = 0; index <= shape.switchTargets; index++) {
      out.u32(index % (shape.nesting + 1));
    }
  }
  repeat(shape.nesting, Op.end);
  repeat(shape.operands, Op.drop);
  if (hasCalls(shape)) {
    const zero = shape.values === 'i32' ? [Op.i32Const, 0] : [Op.refNull, 0];
    repeat(shape.calls > 0 ? shape.parameters : 0, ...zero);
    const callee = new BinaryWriter().op(Op.call).u32(shape.imports + 1).written;
    repeat(shape.calls, ...callee);
    repeat(shape.calls > 0 ? shape.parameters : 0, Op.drop);
    out.op(Op.unreachable);
    repeat(shape.unreachableCalls, ...callee);
    out.op(Op.unreachable);
  }
  if (shape.returns > 0) {
    out.op(Op.unreachable);
    repeat(shape.returns, Op.return);
  }
  return out.op(Op.end).written;
}
