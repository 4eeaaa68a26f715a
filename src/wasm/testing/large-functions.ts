import { BinaryReader } from '../binary/binary-reader.ts';
import { BinaryWriter } from '../binary/binary-writer.ts';
import { USUAL_FUNCTION_BYTES } from '../instrumentation/module-bounds.ts';
import { Op, ValueType } from '../binary/opcodes.ts';
import { SectionId } from '../binary/section-id.ts';

const HEADER_BYTES = 8;
const EMPTY_GROUP = [0, ValueType.i32];

/** The module with functions that are larger than usual, by declarations of no locals, and do the same. */
export function withLargeFunctions(module: Uint8Array): Uint8Array {
  const reader = new BinaryReader(module, HEADER_BYTES);
  const out = new BinaryWriter().range(module, 0, HEADER_BYTES);
  while (!reader.isAtEnd) {
    const id = reader.u8();
    const content = reader.slice(reader.u32());
    out.op(id).sized(id === SectionId.code ? enlarged(content) : content);
  }
  return out.written.slice();
}

function enlarged(section: Uint8Array): Uint8Array {
  const groups = Math.ceil(USUAL_FUNCTION_BYTES / EMPTY_GROUP.length);
  const reader = new BinaryReader(section);
  const out = new BinaryWriter().u32(reader.u32());
  while (!reader.isAtEnd) {
    const body = new BinaryReader(reader.slice(reader.u32()));
    const larger = new BinaryWriter().u32(body.u32() + groups);
    for (let group = 0; group < groups; group++) {
      larger.op(...EMPTY_GROUP);
    }
    out.sized(larger.range(body.bytes, body.pos, body.end).written);
  }
  return out.written;
}

/** Locals of a function of Go: what it was called for, the stack, and registers. */
const [RESUME, STACK, FIRST_REGISTER, REGISTERS] = [0, 1, 2, 16];
/** Instructions on registers between two calls. */
const STEPS = 4;
const EMPTY_BLOCK_TYPE = 0x40;
const MEMORY_ARGUMENT = [3, 0];

/**
 * A module with a function of this many calls as Go compiles it: a loop around a switch that continues after any of its calls,
 * registers in locals, and branches back to the switch. 70 bytes for each call.
 */
export function goFunction(calls: number): Uint8Array {
  const { i32, i64 } = ValueType;
  const out = new BinaryWriter().op(0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
  const section = (id: number, content: BinaryWriter): unknown => out.op(id).sized(content.written);
  section(SectionId.type, new BinaryWriter().op(1, 0x60, 1, i32, 1, i32));
  section(SectionId.function, new BinaryWriter().op(2, 0, 0));
  section(SectionId.memory, new BinaryWriter().op(1, 0, 1));
  section(SectionId.export, new BinaryWriter().op(1).name('run').op(0, 0));
  const callee = new BinaryWriter().op(0, Op.i32Const, 0, Op.end);
  const body = new BinaryWriter().op(2, 1, i32, REGISTERS, i64);
  section(SectionId.code, new BinaryWriter().op(2).sized(writeCalls(body, calls).written).sized(callee.written));
  return out.written.slice();
}

function writeCalls(body: BinaryWriter, calls: number): BinaryWriter {
  const each = Array.from({ length: calls }, (_, index) => index);
  body.op(Op.loop, EMPTY_BLOCK_TYPE);
  each.forEach(() => body.op(Op.block, EMPTY_BLOCK_TYPE));
  body.op(Op.localGet, RESUME, Op.brTable).u32(calls - 1);
  each.forEach((index) => body.u32(index));
  each.forEach((index) => writeCall(body, index, calls));
  return body.op(Op.end, Op.unreachable, Op.end);
}

/** What follows a resume point, up to the next call. */
function writeCall(body: BinaryWriter, index: number, calls: number): void {
  body.op(Op.end);
  for (let step = 0; step < STEPS; step++) {
    const register = FIRST_REGISTER + ((index + step) % REGISTERS);
    body.op(Op.localGet, STACK, Op.localGet, register, Op.localGet, STACK, 0x29, ...MEMORY_ARGUMENT, 0x7c);
    body.op(Op.localTee, register, 0x37, ...MEMORY_ARGUMENT);
  }
  const again = calls - 1 - index;
  body.op(Op.localGet, FIRST_REGISTER + (index % REGISTERS), 0x50, Op.if, EMPTY_BLOCK_TYPE);
  body
    .op(Op.i32Const)
    .s32((index * 7) % calls)
    .op(Op.localSet, RESUME, Op.br)
    .u32(1 + again)
    .op(Op.end);
  body.op(Op.localGet, STACK, Op.call, 1, Op.if, EMPTY_BLOCK_TYPE, Op.i32Const, 1, Op.return, Op.end);
}
