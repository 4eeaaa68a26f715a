import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CallContext } from './call.ts';
import { compileModule } from '../instrumentation/compile.ts';
import { GUEST_ERROR_BYTES, WapcGuest } from './wapc.ts';
import { contextOf, example, fixture, TEST_MEMORY_BYTES } from '../testing/guests.ts';
import { wat } from '../testing/wat.ts';
import { LOG_LIMIT_BYTES } from './wasi.ts';

const ISOLATIONS = ['restore', 'fresh'] as const;

function guestOf(bytes: Uint8Array, isolation: (typeof ISOLATIONS)[number] = 'restore'): WapcGuest {
  return new WapcGuest(compileModule(bytes, { memoryLimitBytes: 2 * TEST_MEMORY_BYTES, isolation }));
}

/** Lets a guest validate a request with this object and returns its response. */
function validate(guest: WapcGuest, object: unknown, context: CallContext = contextOf()): unknown {
  const question = JSON.stringify({ request: { object }, settings: {} });
  return JSON.parse(Buffer.from(guest.call('validate', question, context)).toString());
}

describe('WapcGuest', () => {
  for (const isolation of ISOLATIONS) {
    it(`calls a policy of Kubewarden's Rust SDK (${isolation})`, () => {
      const guest = guestOf(example('pod-privileged'), isolation);
      const call = (privileged: boolean): { accepted: boolean; message?: string } => {
        const container = { name: 'main', image: 'i', securityContext: { privileged } };
        const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers: [container] } };
        const request = { uid: '1', kind: { group: '', version: 'v1', kind: 'Pod' }, operation: 'CREATE', object };
        const question = Buffer.from(JSON.stringify({ request, settings: {} }));
        return JSON.parse(Buffer.from(guest.call('validate', question, contextOf())).toString()) as {
          accepted: boolean;
        };
      };
      for (let round = 0; round < 3; round++) {
        assert.equal(call(false).accepted, true);
        const { accepted, message } = call(true);
        assert.equal(accepted, false);
        assert.match(message ?? '', /privileged containers are not allowed: main/);
      }
      const fuelOf = (): number => {
        call(true);
        return guest.fuelUsed;
      };
      assert.equal(fuelOf(), fuelOf());
    });

    it(`isolates calls of a hostile guest from each other (${isolation})`, () => {
      for (const name of ['stateful', 'stateful-growth', 'stateful-segments']) {
        const guest = guestOf(fixture(name), isolation);
        const first = guest.call('validate', '{}', contextOf());
        assert.deepEqual(guest.call('validate', '{}', contextOf()), first, name);
      }
    });
  }

  it('accepts text and bytes in any script', () => {
    const guest = guestOf(fixture('scripted-answer'));
    const answer = 'Grüße, 世界 🚀';
    assert.equal(
      Buffer.from(guest.call('validate', JSON.stringify({ request: { object: { answer } } }), contextOf())).toString(),
      answer,
    );
  });

  it('fails one call when a guest misbehaves, with the reason', () => {
    const cases: [fixture: string, code: string, message?: RegExp][] = [
      ['trap', 'trap'],
      ['loop-in-validate', 'out-of-fuel'],
      ['bulk-memory-loop', 'out-of-fuel'],
      ['deep-recursion', 'trap', /call stack/],
      ['guest-error', 'guest-error'],
      ['silent-failure', 'guest-error', /without an error message/],
      ['silent-success', 'guest-error', /no answer/],
      ['huge-answer', 'answer-too-large', /at most 1048576 bytes/],
    ];
    for (const [name, code, message] of cases) {
      const guest = guestOf(fixture(name));
      for (let round = 0; round < 2; round++) {
        assert.throws(
          () => guest.call('validate', '{}', contextOf({ fuel: 50_000_000 })),
          (error: Error & { code: string }) => {
            assert.equal(error.code, code, `${name}: ${error.message}`);
            assert.match(error.message, message ?? /./, name);
            return true;
          },
        );
      }
      assert.equal(Buffer.from(guest.call('protocol_version', '', contextOf())).toString(), '"v1"', name);
    }
  });

  it('gives no guest more memory than the limit, and the same to the next call', () => {
    const guest = guestOf(fixture('memory-bomb'));
    for (let round = 0; round < 2; round++) {
      assert.match(Buffer.from(guest.call('validate', '{}', contextOf())).toString(), /no more memory/);
    }
  });

  it('rejects pointers outside of the guest memory in every import', () => {
    const guest = guestOf(fixture('wild-pointers'));
    const context = contextOf({}, () => new TextEncoder().encode('answer'));
    const modes = ['response-pointer', 'response-end', 'error', 'log', 'host-call', 'host-response', 'request'];
    for (const mode of modes) {
      assert.throws(() => validate(guest, { mode }, context), { code: 'bad-pointer' }, mode);
    }
    for (const mode of ['response-length', 'response-overflow']) {
      assert.throws(() => validate(guest, { mode }, context), { code: 'answer-too-large' }, mode);
    }
    assert.throws(() => validate(guest, { mode: 'store' }, context), { code: 'trap' });
    assert.deepEqual(validate(guest, { mode: 'none' }, context), { accepted: true });
  });

  it('passes host calls on, with answers and errors of any length', () => {
    const guest = guestOf(fixture('echo-host-call'));
    const calls: string[] = [];
    const context = contextOf({}, (binding, namespace, operation, payload) => {
      calls.push([binding, namespace, operation, Buffer.from(payload).toString()].join(' '));
      if (operation === 'fail') {
        throw new Error('nicht möglich: 世界');
      }
      return new TextEncoder().encode(operation === 'large' ? 'x'.repeat(100_000) : 'answer');
    });
    const call = (op: string): unknown =>
      validate(guest, { binding: 'kubewarden', ns: 'net', op, payload: { a: 1 } }, context);
    assert.deepEqual(call('small'), { accepted: true, message: 'answer' });
    assert.deepEqual(call('large'), { accepted: true, message: 'x'.repeat(100_000) });
    assert.deepEqual(call('fail'), { accepted: false, message: 'nicht möglich: 世界' });
    assert.equal(calls[0], 'kubewarden net small {"a":1}');
  });

  it('charges for the payload of a host call before the host parses it', () => {
    for (const index of [0, 1, 2, 3]) {
      const lengths = Array.from({ length: 4 }, (_, at) => (at === index ? 60_000 : 0));
      const ranges = lengths.map((length) => `(i32.const 0) (i32.const ${length})`).join(' ');
      const guest = guestOf(
        wat(`(module (import "wapc" "__host_call" (func $ask (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
          (memory 1) (func (export "__guest_call") (param i32 i32) (result i32) (call $ask ${ranges})))`),
      );
      const context = contextOf({ fuel: 900_000 }, () => assert.fail('it has not that much fuel'));
      assert.throws(() => guest.call('validate', '', context), { code: 'out-of-fuel' });
    }
  });

  it('charges for calls of functions without effect', () => {
    const wasi = (name: string, parameters: string, args: string): WapcGuest =>
      guestOf(
        wat(`(module (import "wasi_snapshot_preview1" "${name}" (func $f (param ${parameters}) (result i32)))
          (memory 2) (func (export "__guest_call") (param i32 i32) (result i32) (local $i i32)
            (loop $l (drop (call $f ${args})) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 500))))
            (i32.const 0)))`),
      );
    const number = (value: number): string => `(i32.const ${value})`;
    const silent = guestOf(
      wat(`(module (import "wapc" "__console_log" (func $log (param i32 i32)))
        (memory 1) (func (export "__guest_call") (param i32 i32) (result i32) (local $i i32)
          (loop $l (call $log (i32.const 0) (i32.const 0)) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10000))))
          (i32.const 0)))`),
    );
    assert.throws(() => silent.call('validate', '', contextOf({ fuel: 4_000_000 })), { code: 'out-of-fuel' });
    for (const [name, parameters, args] of [
      ['fd_write', 'i32 i32 i32 i32', [2, 128, 1024, 90_000]],
      ['fd_read', 'i32 i32 i32 i32', [0, 128, 1024, 90_000]],
      ['poll_oneoff', 'i32 i32 i32 i32', [0, 60_000, 1000, 0]],
      ['random_get', 'i32 i32', [-8, 100]],
    ] as const) {
      const guest = wasi(name, parameters, args.map(number).join(' '));
      assert.throws(() => guest.call('validate', '', contextOf({ fuel: 4_000_000 })), { code: 'out-of-fuel' }, name);
    }
  });

  it('logs what the guest writes to its console, up to a limit', () => {
    const guest = guestOf(fixture('scripted-answer'));
    const context = contextOf();
    guest.call('validate', JSON.stringify({ request: { object: { log: 'seen', answer: '{}' } } }), context);
    assert.deepEqual(context.lines, ['seen']);
    const talkative = guestOf(
      wat(`(module (import "wapc" "__console_log" (func $log (param i32 i32))) (import "wapc" "__guest_response" (func $answer (param i32 i32)))
        (memory 1) (func (export "__guest_call") (param i32 i32) (result i32) (local $i i32)
          (loop $l (call $log (i32.const 0) (i32.const 60000)) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000))))
          (call $answer (i32.const 0) (i32.const 1)) (i32.const 1)))`),
    );
    const flooded = contextOf();
    talkative.call('validate', '', flooded);
    assert.ok(flooded.lines.join('').length < 2 * LOG_LIMIT_BYTES);
    assert.match(flooded.lines[0] ?? '', /cut: 60000 bytes/);
  });

  it('truncates long error texts of guests', () => {
    const guest = guestOf(
      wat(`(module (import "wapc" "__guest_error" (func $error (param i32 i32))) (memory 2)
        (func (export "__guest_call") (param i32 i32) (result i32)
          (memory.fill (i32.const 0) (i32.const 97) (i32.const 100000)) (call $error (i32.const 0) (i32.const 100000)) (i32.const 0)))`),
    );
    assert.throws(
      () => guest.call('validate', '', contextOf()),
      (error: Error) => {
        assert.ok(error.message.length < GUEST_ERROR_BYTES + 100);
        return true;
      },
    );
  });

  it('runs the start code of every toolchain', () => {
    const started = (starts: string): string =>
      `(module (import "wapc" "__guest_response" (func $answer (param i32 i32))) (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory 1) (data (i32.const 8) "0") ${starts}
        (func $mark (param i32) (i32.store8 (i32.const 8) (i32.add (i32.load8_u (i32.const 8)) (local.get 0))))
        (func (export "__guest_call") (param i32 i32) (result i32) (call $answer (i32.const 8) (i32.const 1)) (i32.const 1)))`;
    const answerOf = (starts: string): string =>
      Buffer.from(guestOf(wat(started(starts))).call('x', '', contextOf())).toString();
    const [initialize, start, wapcInit] = ['_initialize', '_start', 'wapc_init'].map(
      (name, index) => `(func (export "${name}") (call $mark (i32.const ${2 ** index})))`,
    );
    assert.equal(answerOf(''), '0');
    assert.equal(answerOf(`${initialize}`), '1');
    assert.equal(answerOf(`${start} ${wapcInit}`), '6');
    assert.equal(answerOf(`${initialize} ${start} ${wapcInit}`), '5');
    assert.equal(answerOf('(func (export "_start") (call $mark (i32.const 3)) (call $exit (i32.const 0)))'), '3');
    assert.throws(() => answerOf('(func (export "_start") (call $exit (i32.const 3)))'), {
      code: 'guest-error',
      message: /exit code 3/,
    });
  });

  it('fails to start when the start code hangs, or a function is missing', () => {
    assert.throws(() => guestOf(fixture('loop-in-init')).start(), { code: 'out-of-fuel' });
    assert.throws(() => guestOf(fixture('loop-in-start')).start(), { code: 'out-of-fuel' });
    assert.throws(() => guestOf(fixture('unknown-import')).start(), { code: 'import-missing' });
    assert.throws(() => guestOf(fixture('wasi-accept')), { code: 'export-missing', message: /__guest_call/ });
  });

  it('reports why an AssemblyScript guest aborted', () => {
    const utf16 = (text: string): string =>
      [...Buffer.from(text, 'utf16le')].map((byte) => `\\${byte.toString(16).padStart(2, '0')}`).join('');
    const guest = guestOf(
      wat(`(module (import "env" "abort" (func $abort (param i32 i32 i32 i32))) (memory 1)
        (data (i32.const 12) "\\08\\00\\00\\00${utf16('oops')}") (data (i32.const 60) "\\08\\00\\00\\00${utf16('a.ts')}")
        (func (export "__guest_call") (param i32 i32) (result i32)
          (call $abort (i32.const 16) (i32.const 64) (i32.const 7) (i32.const 1)) (i32.const 1)))`),
    );
    assert.throws(() => guest.call('validate', '', contextOf()), { code: 'trap', message: /oops \(a\.ts:7\)/ });
  });
});
