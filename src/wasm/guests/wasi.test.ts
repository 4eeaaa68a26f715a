import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import * as fc from 'fast-check';

import { compileModule } from '../instrumentation/compile.ts';
import { WasmError } from '../binary/errors.ts';
import { SandboxInstance } from './sandbox.ts';
import { commandModule } from '../testing/command-module.ts';
import { createWasi, InputQueue, LOG_LIMIT_BYTES, SLEEP_LIMIT_NS, STDIN_LIMIT_BYTES, WasiProcess } from './wasi.ts';
import type { WasiProcessOptions } from './wasi.ts';

const PAGE = 65_536;
const Errno = { success: 0, badf: 8, fault: 21, inval: 28, spipe: 70, notcapable: 76 };

/** The functions for an empty module with one page of memory. */
function setUp(options: Partial<WasiProcessOptions> = {}) {
  const compiled = compileModule(commandModule({ steps: [] }), { memoryLimitBytes: PAGE, isolation: 'fresh' });
  const instance = new SandboxInstance(compiled, { imports: () => ({}) });
  const logged: string[] = [];
  const process = new WasiProcess({ log: (text) => logged.push(text), ...options });
  const functions = createWasi(instance, () => process);
  const call = (name: string, ...args: (number | bigint)[]): unknown =>
    (functions[name] as (...all: (number | bigint)[]) => unknown)(...args);
  const u32 = (ptr: number): number => instance.getUint32(ptr);
  const u64 = (ptr: number): bigint => new DataView(instance.read(ptr, 8).buffer).getBigUint64(0, true);
  /** Writes the vectors to address 0 and returns their number. */
  const vectors = (...ranges: [ptr: number, length: number][]): number => {
    ranges.forEach(([ptr, length], index) => {
      instance.setUint32(index * 8, ptr);
      instance.setUint32(index * 8 + 4, length);
    });
    return ranges.length;
  };
  const subscribe = (
    at: number,
    type: number,
    { fd = 0, clock = 1, timeoutNs = 0n, absolute = false, userdata = 7n } = {},
  ): void => {
    const record = new DataView(new ArrayBuffer(48));
    record.setBigUint64(0, userdata, true);
    record.setUint8(8, type);
    record.setUint32(16, type === 0 ? clock : fd, true);
    record.setBigUint64(24, timeoutNs, true);
    record.setUint16(40, absolute ? 1 : 0, true);
    instance.write(at, new Uint8Array(record.buffer));
  };
  return { instance, process, logged, functions, call, u32, u64, vectors, subscribe };
}

describe('arguments and environment', () => {
  it('lays out the arguments as zero-terminated UTF-8', () => {
    const { call, u32, instance } = setUp({ args: ['policy.wasm', 'é'] });
    assert.equal(call('args_sizes_get', 0, 4), Errno.success);
    assert.deepEqual([u32(0), u32(4)], [2, 15]);
    assert.equal(call('args_get', 0, 100), Errno.success);
    assert.deepEqual([u32(0), u32(4)], [100, 112]);
    assert.equal(instance.readString(100, 15), 'policy.wasm\0é\0');
  });

  it('offers an empty environment', () => {
    const { call, u32, instance } = setUp();
    instance.setUint32(0, 99);
    assert.equal(call('environ_sizes_get', 0, 4), Errno.success);
    assert.deepEqual([u32(0), u32(4)], [0, 0]);
    assert.equal(call('environ_get', 0, 0), Errno.success);
  });
});

describe('stdin', () => {
  it('fills the buffers in order and then reports the end of the file', () => {
    const { call, u32, vectors, instance } = setUp({ stdin: Buffer.from('abcdef') });
    assert.equal(call('fd_read', 0, 0, vectors([100, 2], [200, 3]), 64), Errno.success);
    assert.deepEqual([u32(64), instance.readString(100, 2), instance.readString(200, 3)], [5, 'ab', 'cde']);
    call('fd_read', 0, 0, 2, 64);
    assert.deepEqual([u32(64), instance.readString(100, 1)], [1, 'f']);
    call('fd_read', 0, 0, 2, 64);
    assert.equal(u32(64), 0);
  });

  it('continues after the end of file when bytes are appended', () => {
    const { call, u32, vectors, process, instance } = setUp();
    call('fd_read', 0, 0, vectors([100, 10]), 64);
    assert.equal(u32(64), 0);
    process.stdin.append(Buffer.from('more'));
    process.stdin.append(Buffer.from('!'));
    call('fd_read', 0, 0, 1, 64);
    assert.equal(instance.readString(100, u32(64)), 'more!');
  });

  it('limits unread bytes', () => {
    const queue = new InputQueue();
    const half = new Uint8Array(STDIN_LIMIT_BYTES / 2);
    queue.append(half);
    queue.append(half);
    assert.throws(() => queue.append(Uint8Array.of(1)), { code: 'guest-error' });
    queue.take(1);
    queue.append(Uint8Array.of(1));
  });

  it('cannot be written', () => {
    const { call, vectors } = setUp();
    assert.equal(call('fd_write', 0, 0, vectors([100, 1]), 64), Errno.badf);
    assert.equal(call('fd_read', 1, 0, 1, 64), Errno.badf);
  });
});

describe('stdout and stderr', () => {
  it('captures stdout', () => {
    const { call, u32, vectors, process, instance } = setUp({ stdoutLimitBytes: 10 });
    instance.writeString(100, 'hello', 5);
    assert.equal(call('fd_write', 1, 0, vectors([100, 5], [100, 2]), 64), Errno.success);
    assert.equal(u32(64), 7);
    assert.equal(Buffer.from(process.stdout()).toString(), 'hellohe');
  });

  it('refuses more stdout than allowed', () => {
    const { call, vectors } = setUp({ stdoutLimitBytes: 10 });
    assert.throws(() => call('fd_write', 1, 0, vectors([100, 11]), 64), { code: 'answer-too-large' });
  });

  it('logs stderr line by line, the unfinished line at the end', () => {
    const { call, vectors, process, logged, instance } = setUp();
    instance.writeString(100, 'one\ntw', 6);
    call('fd_write', 2, 0, vectors([100, 6]), 64);
    instance.writeString(100, 'o\n\nthree', 8);
    call('fd_write', 2, 0, vectors([100, 8]), 64);
    assert.deepEqual(logged, ['one', 'two']);
    process.flush();
    assert.deepEqual(logged, ['one', 'two', 'three']);
  });

  it('logs stdout when it is not captured', () => {
    const { call, vectors, logged, instance } = setUp();
    instance.writeString(100, 'hi\n', 3);
    call('fd_write', 1, 0, vectors([100, 3]), 64);
    assert.deepEqual(logged, ['hi']);
  });

  it('stops logging at the limit, and logs that it did', () => {
    const { call, vectors, process, logged } = setUp();
    for (let i = 0; i < 100; i++) {
      call('fd_write', 2, 0, vectors([1000, 10_000]), 64);
    }
    process.flush();
    const last = logged.pop() ?? '';
    assert.match(last, /log ends here/);
    assert.equal(logged.join('').length, LOG_LIMIT_BYTES);
  });

  it('are invalid once closed', () => {
    const { call, vectors } = setUp();
    assert.equal(call('fd_close', 2), Errno.success);
    assert.equal(call('fd_write', 2, 0, vectors([100, 1]), 64), Errno.badf);
    assert.equal(call('fd_close', 2), Errno.badf);
  });
});

describe('file descriptors', () => {
  it('are streams that can only be read or written', () => {
    const { call, u64, instance } = setUp();
    const statOf = (fd: number): [unknown, number, bigint] => [
      call('fd_fdstat_get', fd, 0),
      instance.getUint8(0),
      u64(8) & 0x42n,
    ];
    assert.deepEqual(statOf(0), [Errno.success, 0, 2n]);
    assert.deepEqual(statOf(1), [Errno.success, 0, 0x40n]);
    assert.equal(call('fd_fdstat_get', 3, 0), Errno.badf);
    assert.equal(call('fd_filestat_get', 1, 0), Errno.success);
    assert.equal(call('fd_seek', 0, 0n, 0, 0), Errno.spipe);
  });

  it('name no folder, so that nothing can be opened', () => {
    const { call } = setUp();
    assert.equal(call('fd_prestat_get', 3, 0), Errno.badf);
    assert.equal(call('path_open', 3, 0, 0, 5, 0, 0n, 0n, 0, 0), Errno.notcapable);
    assert.equal(call('sock_accept', 3, 0, 0), Errno.badf);
  });

  it('has all 46 functions of preview 1', () => {
    assert.equal(Object.keys(setUp().functions).length, 46);
  });
});

describe('clocks', () => {
  it('return the real time, in coarse steps', () => {
    const { call, u64 } = setUp();
    const before = BigInt(Date.now()) * 1_000_000n;
    assert.equal(call('clock_time_get', 0, 0n, 0), Errno.success);
    assert.ok(u64(0) >= before - 1_000_000n && u64(0) % 100_000n === 0n);
    assert.equal(call('clock_res_get', 1, 0), Errno.success);
    assert.equal(u64(0), 100_000n);
    assert.equal(call('clock_time_get', 4, 0n, 0), Errno.inval);
  });

  it('jump over the time that the guest sleeps', () => {
    const { call, u32, u64, subscribe, instance } = setUp();
    call('clock_time_get', 1, 0n, 0);
    const before = u64(0);
    subscribe(100, 0, { timeoutNs: 60_000_000_000n, userdata: 42n });
    assert.equal(call('poll_oneoff', 100, 200, 1, 300), Errno.success);
    assert.deepEqual([u32(300), u64(200), instance.getUint8(210)], [1, 42n, 0]);
    call('clock_time_get', 1, 0n, 0);
    assert.ok(u64(0) - before >= 60_000_000_000n);
  });

  it('understand absolute times', () => {
    const { call, u64, u32, subscribe } = setUp();
    call('clock_time_get', 0, 0n, 0);
    const wake = u64(0) + 5_000_000_000n;
    subscribe(100, 0, { clock: 0, timeoutNs: wake, absolute: true });
    subscribe(148, 0, { clock: 0, timeoutNs: wake + 10n ** 9n, absolute: true, userdata: 8n });
    call('poll_oneoff', 100, 200, 2, 300);
    assert.deepEqual([u32(300), u64(200)], [1, 7n]);
    call('clock_time_get', 0, 0n, 0);
    assert.ok(u64(0) >= wake);
  });

  it('limit the total sleep', () => {
    const { call, subscribe } = setUp();
    subscribe(100, 0, { timeoutNs: SLEEP_LIMIT_NS / 2n });
    call('poll_oneoff', 100, 200, 1, 300);
    assert.throws(() => call('poll_oneoff', 100, 200, 1, 300), { code: 'guest-error' });
  });

  it('report readable descriptors without sleeping', () => {
    const { call, u32, u64, subscribe, process, instance } = setUp({ stdin: Buffer.from('abc') });
    const before = process.now(1);
    subscribe(100, 0, { timeoutNs: SLEEP_LIMIT_NS });
    subscribe(148, 1, { fd: 0, userdata: 9n });
    call('poll_oneoff', 100, 200, 2, 300);
    assert.deepEqual([u32(300), u64(200), instance.getUint8(210), u64(216)], [1, 9n, 1, 3n]);
    assert.ok(process.now(1) - before < SLEEP_LIMIT_NS);
  });

  it('refuse to poll for nothing, or for too much', () => {
    const { call } = setUp();
    assert.equal(call('poll_oneoff', 100, 200, 0, 300), Errno.inval);
    assert.equal(call('poll_oneoff', 100, 200, 1_000_000, 300), Errno.inval);
  });
});

describe('random_get', () => {
  it('returns different bytes every time, over more than one chunk', () => {
    const { call, instance } = setUp();
    const draws = new Set<string>();
    for (let i = 0; i < 4; i++) {
      assert.equal(call('random_get', 0, PAGE), Errno.success);
      draws.add(Buffer.from(instance.read(PAGE - 16, 16)).toString('hex'));
    }
    assert.equal(draws.size, 4);
  });
});

describe('a hostile guest', () => {
  it('returns an error number for any invalid pointer, and never breaks the host', () => {
    const names = Object.keys(setUp().functions).filter((name) => name !== 'proc_exit');
    const wild = fc.oneof(
      fc.constantFrom(0, 1, -1, PAGE - 1, PAGE, PAGE - 4, 0x7fffffff, -0x80000000),
      fc.integer({ min: -0x80000000, max: 0x7fffffff }),
    );
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.array(wild, { minLength: 4, maxLength: 9 }), (name, args) => {
        const { call } = setUp({ stdin: Buffer.from('abc'), args: ['x'], stdoutLimitBytes: 100 });
        const typed = name.startsWith('clock_time') ? [args[0]!, 0n, args[2]!] : args;
        try {
          const errno = call(name, ...typed);
          assert.ok(Number.isInteger(errno) && (errno as number) >= 0 && (errno as number) <= 76);
        } catch (error) {
          assert.ok(error instanceof WasmError && error.code !== 'bad-pointer', String(error));
        }
      }),
      { numRuns: 500 },
    );
  });

  it('writes nothing when one of the buffers is invalid', () => {
    const { call, vectors, process } = setUp({ stdin: Buffer.from('abc'), stdoutLimitBytes: 100 });
    assert.equal(call('fd_write', 1, 0, vectors([100, 5], [PAGE - 1, 2]), 64), Errno.fault);
    assert.equal(process.stdout().length, 0);
    assert.equal(call('fd_read', 0, 0, 2, 64), Errno.fault);
    assert.equal(process.stdin.available, 3);
    assert.equal(call('fd_read', 0, 0, 5000, 64), Errno.inval);
  });
});
