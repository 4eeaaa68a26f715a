import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parseJson } from '../../values/index.ts';
import { BinaryWriter } from '../binary/binary-writer.ts';
import { compileModule } from './compile.ts';
import { WasmError } from '../binary/errors.ts';
import { MAX_GLOBALS, MAX_TYPES } from './module-bounds.ts';
import { Op } from '../binary/opcodes.ts';
import { rewriteModule } from './rewrite.ts';
import { example, fixture } from '../testing/guests.ts';
import { HARMLESS, hostileModule } from '../testing/hostile-module.ts';
import type { HostileShape } from '../testing/hostile-module.ts';
import { goFunction } from '../testing/large-functions.ts';
import { wat } from '../testing/wat.ts';

const MIB = 1024 * 1024;
const PAGES = 1024;

/**
 * Memory that any module may take while it is validated, rewritten and compiled: that of one function at the bounds
 * (14 million values of 12 bytes), of those that V8 compiles beside it, and of the heap.
 */
const FIXED_BYTES = 384 * MIB;

/** Memory for each byte of a module besides that: its bytes, those of the rewritten one twice, and V8's code. */
const BYTES_PER_MODULE_BYTE = 64;

/** Bytes of a rewritten module for each of its bytes, besides the functions that every module gets: `loop end` grows most. */
const REWRITTEN_PER_BYTE = 12;
const ADDED_BYTES = 2_000;

/** Memory for each byte of the module that grows most, while it is rewritten: seven bytes of output, once copied to grow. */
const REWRITING_PER_BYTE = 18;

/** Memory for each byte of a module while it is generated; rewriting such a module took 150. */
const GENERATING_PER_BYTE = 16;

const MODULE_START = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];

const SEED = 20_261_124;
const RUNS = 60;
/** Ends a child that neither compiles nor fails. Milliseconds. */
const HANG_MS = 120_000;

function compile(shape: Partial<HostileShape>): void {
  compileModule(hostileModule({ ...HARMLESS, ...shape }), { memoryLimitBytes: 64 * MIB, isolation: 'restore' });
}

interface Compilation {
  readonly shape: HostileShape;
  readonly bytes: number;
  readonly peakBytes: number;
  readonly code: string;
  readonly rewrittenBytes: number;
}

/** Compiles hostile modules in a process, whose peak memory nothing else has raised. */
function compilations(...args: string[]): Compilation[] {
  const script = fileURLToPath(new URL('../testing/compile-hostile.ts', import.meta.url));
  const child = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8', timeout: HANG_MS });
  const lines = child.stdout.trim().split('\n');
  assert.equal(child.status, 0, `${child.stderr} after ${lines.at(-1)}`);
  return lines.map((line) => parseJson(line) as Compilation);
}

function assertBounded({ bytes, peakBytes, rewrittenBytes, shape }: Compilation): void {
  const shown = JSON.stringify(shape);
  assert.ok(peakBytes <= FIXED_BYTES + BYTES_PER_MODULE_BYTE * bytes, `${peakBytes} bytes of memory for ${shown}`);
  assert.ok(
    rewrittenBytes <= ADDED_BYTES + REWRITTEN_PER_BYTE * bytes,
    `${rewrittenBytes} bytes from ${bytes}: ${shown}`,
  );
}

describe('A module', () => {
  const refused: Record<string, [shape: Partial<HostileShape>, message: RegExp]> = {
    'of 4 KB whose function has many locals and blocks': [
      { locals: 49_000, blocks: 'if', nesting: 800 },
      /^function 0 has \d+ values of locals and operands at labels: expected at most 14000000, .*; split the function/,
    ],
    'whose function has many operands and blocks': [
      { operands: 30_000, blocks: 'loop', sequence: 2_000 },
      /^function 0 has \d+ values/,
    ],
    'whose function has many locals and branches': [{ locals: 49_000, branches: 1_000 }, /^function 0 has \d+ values/],
    'whose function has a switch of many targets over many locals': [
      { locals: 49_000, nesting: 400, switchTargets: 5_000 },
      /^function 0 has \d+ values/,
    ],
    'whose function is large for one reason, and too costly for another': [
      { operands: 15_000, nesting: 20_000, branches: 20_000 },
      /^function 0 has \d+ values/,
    ],
    'whose function is large': [{ stores: 200_000 }, /^function 0 has 2\d+ bytes of code: expected at most 1048576/],
    'whose function has many loops': [
      { blocks: 'loop', sequence: 9_000 },
      /^function 0 has 9000 loops: expected at most 8000/,
    ],
    'whose function has twice as many values as that of any policy': [
      { locals: 5_000, blocks: 'if', sequence: 1_600 },
      /^function 0 has 1[67]\d{6} values/,
    ],
    'with many types': [{ types: MAX_TYPES }, /too many function types: expected at most 10000, got 10001/],
    'with many parameters': [
      { parameters: 1_000, types: 101 },
      /too many parameters and results of all function types together: expected at most 100000, got 101000/,
    ],
    'of 9 KB whose calls pass many values': [
      { functions: 2, parameters: 900, calls: 500 },
      /^function 0 has 900000 parameters and results of calls, blocks, branches and returns: expected at most \d+, because .*; split/,
    ],
    'whose calls pass many values after the last instruction that is reached': [
      { functions: 2, parameters: 900, unreachableCalls: 500 },
      /^function 0 has 900000 parameters and results of calls/,
    ],
    'whose large function passes many values': [
      { functions: 2, parameters: 8, calls: 70_000 },
      /^function 0 has 1120000 parameters and results of calls, blocks, branches and returns: expected at most 1000000,/,
    ],
    'of 2 KB that returns many values again and again': [
      { parameters: 900, returns: 500 },
      /^function 0 has 450000 parameters and results of calls, blocks, branches and returns: expected at most \d+, because/,
    ],
    'of 3 KB whose functions have many locals': [
      { functions: 300, locals: 49_000 },
      /^the module has too many locals of all functions together: expected at most 10000000, got 10045000/,
    ],
    'with many globals': [{ globals: MAX_GLOBALS + 1 }, /too many globals: expected at most 10000, got 10001/],
    'with many imports': [{ imports: 20_001 }, /too many imports: expected at most 20000/],
  };
  for (const [title, [shape, message]] of Object.entries(refused)) {
    it(`${title} is refused before it is compiled`, () => {
      assert.throws(() => compile(shape), { name: 'WasmError', code: 'module-too-costly', message });
    });
  }

  it('is refused with the index and name of its function, imported ones counted', () => {
    const loops = '(loop)'.repeat(9_000);
    const text = `(module (import "env" "log" (func)) (func $small) (func $"evaluate all" ${loops}))`;
    assert.throws(
      () => compileModule(withNames(wat(text), 2, 'evaluate all'), { memoryLimitBytes: MIB, isolation: 'restore' }),
      {
        code: 'module-too-costly',
        message: /^function 2 "evaluate all" has 9000 loops/,
      },
    );
  });

  it('may have as many parameters and results as V8 accepts', () => {
    compile({ functions: 2, parameters: 1_000, calls: 1 });
    assert.throws(() => compile({ functions: 2, parameters: 1_001, calls: 1 }), {
      code: 'module-invalid',
      message: /param count of 1001 exceeds internal limit of 1000/,
    });
  });

  it('of Go may have a function of 167 KB', () => {
    const module = goFunction(1_885);
    assert.ok(module.length > 167_000);
    compileModule(module, { memoryLimitBytes: MIB, isolation: 'restore' });
  });

  it('that is malformed is refused as invalid, not as too costly', () => {
    const module = hostileModule({ ...HARMLESS, types: 20_000 });
    assert.throws(() => compileModule(module.subarray(0, 12), { memoryLimitBytes: MIB, isolation: 'restore' }), {
      code: 'module-invalid',
    });
  });

  it('that is published has no doubtful function', () => {
    for (const bytes of ['pod-privileged', 'image-registries', 'required-labels'].map(example)) {
      const rewritten = rewriteModule(bytes, PAGES, true);
      assert.ok(typeof rewritten === 'object' && rewritten.doubts === undefined);
    }
    assert.ok(fixture('accept').length > 0);
  });

  it('of two functions with 3 MB each costs little more than to generate it', () => {
    const [compilation] = compilations(JSON.stringify({ functions: 2, blocks: 'loop', sequence: 2_000_000 }));
    assert.equal(compilation?.code, 'module-too-costly');
    assert.ok(
      compilation.peakBytes <= GENERATING_PER_BYTE * compilation.bytes,
      `${compilation.peakBytes} for ${compilation.bytes}`,
    );
  });

  it('of n bytes never costs more than c times n, whatever it has too much of', () => {
    for (const compilation of compilations(String(SEED), String(RUNS))) {
      assertBounded(compilation);
    }
  });
});

describe('The values that a function saves', () => {
  const local = [1, 1, 0x7f];
  const emptyBlock = [0x02, 0x40, 0x0b];
  const drop = 0x1a;
  // The charge at the head of a function is an `if` for its locals, which counts twice.
  const cases: Record<string, [body: number[], savedValues: number]> = {
    'are none without locals and operands': [[0, ...emptyBlock], 0],
    'are its locals at a block': [[2, 1, 0x7f, 1, 0x7e, ...emptyBlock], 4 + 2],
    'are its operands, too': [[...local, 0x41, 1, 0x02, 0x7f, 0x41, 2, 0x0b, 0x6a, drop], 2 + 2],
    'are those of both arms of an if': [[...local, 0x41, 0, 0x04, 0x40, 0x0b], 2 + 2],
    'are those at branches': [[...local, 0x02, 0x40, 0x41, 1, 0x0d, 0, 0x0c, 0, 0x0b], 2 + 1 + 1 + 1],
    'are those at the targets of a switch, each once': [
      [...local, 0x02, 0x40, 0x41, 0, 0x0e, 5, 0, 0, 0, 0, 0, 1, 0x0b],
      2 + 1 + 2,
    ],
    'are not those of a block before': [
      [...local, 0x02, 0x7f, 0x41, 1, 0x0b, drop, 0x02, 0x40, 0x41, 2, drop, 0x0b],
      2 + 1 + 1,
    ],
    'are results of a call': [[...local, 0x10, 0, ...emptyBlock, drop, drop], 2 + 3],
    'are parameters of a block': [[...local, 0x41, 1, 0x02, 2, 0x0b, drop, ...emptyBlock], 2 + 2 + 1],
  };
  for (const [title, [body, savedValues]] of Object.entries(cases)) {
    it(title, () => {
      const module = moduleWithBody([...body, 0x0b]);
      assert.ok(WebAssembly.validate(module), 'test is wrong');
      const rewritten = rewriteModule(module, PAGES, true);
      assert.ok(typeof rewritten === 'object');
      assert.equal(rewritten.largestCosts.savedValues, savedValues);
    });
  }
});

describe('The values that a function passes', () => {
  const two = [0x41, 1, 0x41, 2];
  const three = [...two, 0x41, 3];
  const cases: Record<string, [body: number[], passedValues: number]> = {
    'are results of a call': [[0x10, 0], 2],
    'are parameters and results of a block': [[...two, 0x02, 2, 0x0b], 2],
    'are those of a branch to the end of the function': [[...two, 0x0c, 0], 2],
    'are those of a conditional one': [[...three, 0x0d, 0], 2],
    'are those of a switch, each target once': [[...three, 0x0e, 2, 0, 0, 0], 2],
    'are those of a return': [[0x02, 0x40, ...two, 0x0f, 0x0b, ...two], 2],
    'are those of code that is never reached, too': [[0x00, 0x0f, 0x0f, 0x0c, 0], 6],
  };
  for (const [title, [body, passedValues]] of Object.entries(cases)) {
    it(title, () => {
      const module = moduleWithBody([0, ...body, 0x0b], RESULTS);
      assert.ok(WebAssembly.validate(module), 'test is wrong');
      const rewritten = rewriteModule(module, PAGES, true);
      assert.ok(typeof rewritten === 'object');
      assert.equal(rewritten.largestCosts.passedValues, passedValues);
    });
  }
});

describe('V8', () => {
  const usesObjects = [0, 0x41, 0, 0xfb, 0x1c, 0x1a, 0x0b];
  const isInvalid = [0, 0x6a, 0x0b];
  const refusal = (...bodies: readonly (readonly number[])[]): { bytes: Uint8Array<ArrayBuffer>; error: WasmError } => {
    const bytes = moduleOf(...bodies.map((body) => [0, body] as const));
    try {
      compileModule(bytes, { memoryLimitBytes: MIB, isolation: 'restore' });
    } catch (error) {
      assert.ok(error instanceof WasmError);
      return { bytes, error };
    }
    return assert.fail('it was accepted');
  };

  it('validates no function after the refused one: what they cost is not known', () => {
    assert.equal(refusal(usesObjects, isInvalid).error.code, 'feature-unsupported');
  });

  it('validates those before, and gives its reason with the position in the module', () => {
    const { bytes, error } = refusal(isInvalid, usesObjects, isInvalid);
    assert.equal(error.code, 'module-invalid');
    assert.throws(
      () => new WebAssembly.Module(bytes),
      ({ message }: Error) => {
        assert.match(message, /function #0 failed: .* @\+\d+$/);
        return error.message.includes(message);
      },
    );
  });

  it('does not validate a malformed function that costs too much', () => {
    const bytes = hostileModule({ ...HARMLESS, parameters: 900, returns: 500 });
    const malformed = 0xff;
    bytes[bytes.lastIndexOf(Op.return)] = malformed;
    assert.throws(() => compileModule(bytes, { memoryLimitBytes: MIB, isolation: 'restore' }), {
      code: 'module-too-costly',
    });
  });
});

describe('Rewriting', () => {
  it('takes memory in proportion to the module', () => {
    const script = fileURLToPath(new URL('../testing/rewrite-hostile.ts', import.meta.url));
    const child = spawnSync(process.execPath, [script, '1600'], {
      encoding: 'utf8',
      timeout: HANG_MS,
    });
    const { bytes, peakBytes } = parseJson(child.stdout) as Compilation;
    assert.ok(peakBytes <= REWRITING_PER_BYTE * bytes, `${peakBytes} bytes of memory for ${bytes}`);
  });
});

/** The module with a name section that has one function name. */
function withNames(module: Uint8Array, index: number, name: string): Uint8Array {
  const map = [1, index, name.length, ...Buffer.from(name)];
  const content = [4, ...Buffer.from('name'), 1, map.length, ...map];
  return Uint8Array.from([...module, 0, content.length, ...content]);
}

const NOTHING = 0;
const RESULTS = 1;

/** A module with a function of the type {@link RESULTS}, and one of this type with this body. */
function moduleWithBody(body: readonly number[], type = NOTHING): Uint8Array<ArrayBuffer> {
  return moduleOf([RESULTS, [0, 0x41, 1, 0x41, 2, 0x0b]], [type, body]);
}

/** A module with the types [] -> [], [] -> [i32 i32] and [i32] -> [i32], a memory, and these functions. */
function moduleOf(
  ...functions: readonly (readonly [type: number, body: readonly number[]])[]
): Uint8Array<ArrayBuffer> {
  const out = new BinaryWriter().bytes(Uint8Array.from(MODULE_START));
  const section = (id: number, content: BinaryWriter): BinaryWriter => out.op(id).sized(content.written);
  section(1, new BinaryWriter().op(3, 0x60, 0, 0, 0x60, 0, 2, 0x7f, 0x7f, 0x60, 1, 0x7f, 1, 0x7f));
  section(3, new BinaryWriter().u32(functions.length).op(...functions.map(([type]) => type)));
  section(5, new BinaryWriter().op(1, 0, 1));
  const code = new BinaryWriter().u32(functions.length);
  for (const [, body] of functions) {
    code.sized(Uint8Array.from(body));
  }
  return section(10, code).written;
}
