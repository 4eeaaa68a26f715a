import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import type { CallContext } from './call.ts';
import { compileModule } from '../instrumentation/compile.ts';
import { commandModule, ENDLESS_LOOP, UNREACHABLE } from '../testing/command-module.ts';
import type { CommandSource, ImportedFunction } from '../testing/command-module.ts';
import { WasiCommand } from './wasi-command.ts';

const READ: ImportedFunction = { module: 'wasi_snapshot_preview1', name: 'fd_read', parameters: 4 };
const WRITE: ImportedFunction = { module: 'wasi_snapshot_preview1', name: 'fd_write', parameters: 4 };
const EXIT: ImportedFunction = { module: 'wasi_snapshot_preview1', name: 'proc_exit', parameters: 1, isVoid: true };
const HOST: ImportedFunction = { module: 'host', name: 'call', parameters: 8 };

/** An i32 in memory, as a data segment. */
function word(offset: number, ...values: number[]): { offset: number; bytes: Uint8Array } {
  return { offset, bytes: new Uint8Array(Uint32Array.from(values).buffer) };
}

function load(source: CommandSource): WasiCommand {
  return new WasiCommand(compileModule(commandModule(source), { memoryLimitBytes: 65_536, isolation: 'fresh' }));
}

function context(overrides: Partial<CallContext> = {}): CallContext {
  return {
    limits: { fuel: 1_000_000, answerBytes: 1000 },
    hostCall: () => {
      throw new Error('not allowed');
    },
    log: () => undefined,
    ...overrides,
  };
}

/** Reads up to 100 bytes of stdin to address 1000 and their number to 40; writes that many bytes to stdout. */
const ECHO: CommandSource = {
  imports: [READ, WRITE],
  data: [word(32, 1000, 100), word(48, 1000)],
  // fd_read stores its count at 52, which is the length in the vector of fd_write.
  steps: [
    ['fd_read', 0, 32, 1, 52],
    ['fd_write', 1, 48, 1, 60],
  ],
};

/** Calls the host (binding, namespace, operation, payload: a, bc, d, e), then echoes stdin. */
const ASK: CommandSource = {
  imports: [READ, WRITE, HOST],
  data: [...(ECHO.data ?? []), { offset: 200, bytes: 'abcde' }],
  steps: [['call', 200, 1, 201, 2, 203, 1, 204, 1], ...ECHO.steps],
};

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

describe('WasiCommand', () => {
  it('passes stdin and returns stdout', () => {
    const { stdout, exitCode } = load(ECHO).run(['p'], 'hello', context());
    assert.deepEqual([text(stdout), exitCode], ['hello', 0]);
  });

  it('returns the exit code', () => {
    const command = load({ imports: [EXIT], steps: [['proc_exit', 3], UNREACHABLE] });
    assert.equal(command.run(['p'], '', context()).exitCode, 3);
  });

  it('appends the answer of a host call to stdin', () => {
    const calls: unknown[] = [];
    const { stdout } = load(ASK).run(
      ['p'],
      'left',
      context({
        hostCall: (binding, namespace, operation, payload) => {
          calls.push([binding, namespace, operation, text(payload)]);
          return Buffer.from(' answer');
        },
      }),
    );
    assert.deepEqual(calls, [['a', 'bc', 'd', 'e']]);
    assert.equal(text(stdout), 'left answer');
  });

  it('passes the error text of a failed host call to the guest', () => {
    assert.equal(text(load(ASK).run(['p'], '', context()).stdout), 'not allowed');
  });

  it('offers host calls under the name that javy uses', () => {
    const imports = [READ, WRITE, { ...HOST, module: 'kubewarden:javy/host' }];
    assert.equal(text(load({ ...ASK, imports }).run(['p'], '', context()).stdout), 'not allowed');
  });

  it('keeps no state between runs, however the first one ends', () => {
    // Writes the byte at 1000 before reading anything there.
    const command = load({
      ...ECHO,
      data: [...(ECHO.data ?? []), word(72, 1000, 1)],
      steps: [['fd_write', 1, 72, 1, 60], ...ECHO.steps],
    });
    assert.equal(text(command.run(['p'], 'x', context()).stdout), '\0x');
    assert.equal(text(command.run(['p'], 'y', context()).stdout), '\0y');
    assert.throws(() => command.run(['p'], 'y', context({ limits: { fuel: 1_000_000, answerBytes: 1 } })), {
      code: 'answer-too-large',
    });
    assert.equal(text(command.run(['p'], 'z', context()).stdout), '\0z');
  });

  it('reports a trap, with the guest’s output on stderr', () => {
    const logged: string[] = [];
    const command = load({
      imports: [WRITE],
      data: [{ offset: 100, bytes: 'help' }, word(32, 100, 4)],
      steps: [['fd_write', 2, 32, 1, 60], UNREACHABLE],
    });
    assert.throws(() => command.run(['p'], '', context({ log: (line) => logged.push(line) })), { code: 'trap' });
    assert.deepEqual(logged, ['help']);
  });

  it('ends an endless loop', () => {
    const command = load({ steps: [ENDLESS_LOOP] });
    assert.throws(() => command.run(['p'], '', context()), { code: 'out-of-fuel' });
  });

  it('does not load a library', () => {
    assert.throws(() => load({ steps: [], entry: 'validate' }), { code: 'export-missing' });
  });
});
