// Misbehaving policies: each affects only its own verdict.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import {
  guest,
  requiredLabel,
  requires,
  review,
  type ReviewResponse,
  scripted,
  startServer,
  type TestServer,
} from './harness.ts';

/** Enough that every worker gets several. */
const REPEATS = 24;

const misbehaving = [
  'accept',
  'bulk-memory-loop',
  'deep-recursion',
  'echo-host-call',
  'guest-error',
  'huge-answer',
  'memory-bomb',
  'scripted-answer',
  'silent-failure',
  'silent-success',
  'stateful',
  'stateful-growth',
  'stateful-segments',
  'table-bomb',
  'trap',
  'wasi-accept',
  'wasi-typed-references',
  'wasi-wild-pointers',
  'wild-pointers',
];

const refusedAtLoad: Readonly<Record<string, { readonly reason: string; readonly message: RegExp }>> = {
  'big-memory': { reason: 'InvalidModule', message: /memory/ },
  'loop-in-init': { reason: 'InvalidModule', message: /fuel|loop|time/ },
  'loop-in-start': { reason: 'InvalidModule', message: /fuel|loop|time/ },
  'loop-in-settings': { reason: 'SettingsCheckFailed', message: /fuel|loop|time|did not end/ },
  'minimum-version-99': { reason: 'UnsupportedVersion', message: /99/ },
  'no-metadata': { reason: 'InvalidModule', message: /metadata|protocol/ },
  'protocol-v2': { reason: 'InvalidModule', message: /protocol/ },
  'settings-refused': { reason: 'InvalidSettings', message: /./ },
  'trap-in-settings': { reason: 'SettingsCheckFailed', message: /unreachable|trap/ },
  'wasi-exit-1': { reason: 'SettingsCheckFailed', message: /exited with code 1/ },
  'wasi-garbage': { reason: 'SettingsCheckFailed', message: /UTF-8/ },
  'wasi-huge-output': { reason: 'SettingsCheckFailed', message: /at most \d+ bytes/ },
  'wasi-garbage-collection': {
    reason: 'InvalidModule',
    message: /the module uses garbage collection, which the sandbox/,
  },
  'wasi-loop': { reason: 'SettingsCheckFailed', message: /fuel|loop|time|did not end/ },
  'unknown-import': { reason: 'InvalidModule', message: /env.*mystery/ },
};

describe('guests that misbehave', () => {
  let server: TestServer;
  before(async () => {
    const all = [...misbehaving, ...Object.keys(refusedAtLoad)];
    server = await startServer({
      policies: {
        ...Object.fromEntries(
          all.map((name) => [name, { module: guest(name), timeoutEvalSeconds: name.includes('loop') ? 1 : 5 }]),
        ),
        good: requires('app'),
      },
    });
  });
  after(() => server[Symbol.asyncDispose]());
  afterEach(async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => server.review('good', review())));
    assert.deepEqual(
      answers.map(requiredLabel),
      Array.from({ length: 6 }, () => 'app'),
      'the other policy still answers',
    );
  });

  function failed({ allowed, status }: ReviewResponse, message: RegExp): void {
    assert.deepEqual([allowed, status?.code], [false, 500], JSON.stringify(status));
    assert.match(status?.message ?? '', message);
  }

  it('serve when they can be loaded', async () => {
    for (const id of misbehaving) {
      const { phase, message } = await server.status(id);
      assert.equal(phase, 'Active', `${id}: ${message}`);
    }
  });

  for (const [id, { reason, message }] of Object.entries(refusedAtLoad)) {
    it(`${id}: fails to load, with the reason`, async () => {
      const status = await server.status(id);
      assert.deepEqual([status.phase, status.reason, status.serving], ['Error', reason, null], status.message);
      assert.match(status.message, message);
      failed(await server.review(id, review()), message);
    });
  }

  for (const [id, message] of [
    ['trap', /^internal server error: /],
    ['deep-recursion', /^internal server error: /],
    ['guest-error', /^internal server error: /],
    ['silent-failure', /^internal server error: /],
    ['silent-success', /^internal server error: /],
    ['huge-answer', /^internal server error: /],
    ['bulk-memory-loop', /^Policy execution interrupted/],
  ] as const) {
    it(`${id}: an error, for that one request`, async () => {
      failed(await server.review(id, review()), message);
      failed(await server.review(id, review()), message);
    });
  }

  for (const mode of [
    'response-pointer',
    'response-length',
    'response-end',
    'response-overflow',
    'error',
    'log',
    'host-call',
    'host-response',
    'request',
    'store',
  ]) {
    it(`wild-pointers: ${mode} is an error`, async () => {
      failed(await server.review('wild-pointers', review({ object: { mode } })), /^internal server error: /);
    });
  }

  for (const id of ['accept', 'wasi-accept', 'wasi-typed-references', 'table-bomb', 'wasi-wild-pointers'] as const) {
    it(`${id}: admits`, async () => {
      const { allowed, status } = await server.review(id, review());
      assert.equal(allowed, true, JSON.stringify(status));
    });
  }

  it('memory-bomb: gets no more memory than the limit, and answers', async () => {
    const { allowed, status } = await server.review('memory-bomb', review());
    assert.equal(allowed, false);
    assert.ok((status?.message ?? '') !== '', JSON.stringify(status));
  });

  for (const id of ['stateful', 'stateful-growth', 'stateful-segments', 'wasi-typed-references'] as const) {
    it(`${id}: every request gets the guest's initial state`, async () => {
      const answers = await Promise.all(
        Array.from({ length: REPEATS }, async () => {
          const { uid: _uid, ...rest } = await server.review(id, review());
          return rest;
        }),
      );
      const [first] = answers;
      assert.ok(first !== undefined && first.status?.code !== 500, JSON.stringify(first));
      for (const answer of answers) {
        assert.deepEqual(answer, first);
      }
      if (id === 'stateful' || id === 'stateful-growth') {
        const counts = (first.status?.message ?? '').match(/\b\d+\b/g) ?? [];
        assert.ok(counts.length > 0 && counts.every((count) => count === '1'), first.status?.message);
      }
    });
  }

  const garbage: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    'nothing at all': { answer: '' },
    'no JSON': { answer: 'yes' },
    'half of an object': { answer: '{"accepted":' },
    'bytes that are not UTF-8': { hex: 'c328a0ff00' },
    'a byte order mark': { hex: 'efbbbf7b7d' },
    null: { answer: 'null' },
    'a list': { answer: '[]' },
    'a text': { answer: '"accepted"' },
    'no verdict': { answer: '{}' },
    'a verdict that is no truth value': { answer: '{"accepted":"true"}' },
    'a verdict of 1': { answer: '{"accepted":1}' },
    'a message that is no text': { answer: '{"accepted":false,"message":{}}' },
    'a code out of range': { answer: '{"accepted":false,"code":65536}' },
    'a code below zero': { answer: '{"accepted":false,"code":-1}' },
    'warnings that are no list': { answer: '{"accepted":true,"warnings":"w"}' },
    'annotations that are no texts': { answer: '{"accepted":true,"audit_annotations":{"a":1}}' },
    'deep nesting': { answer: `${'['.repeat(50_000)}${']'.repeat(50_000)}` },
    'a failure without a word': { code: '0', answer: '' },
  };
  for (const [what, script] of Object.entries(garbage)) {
    it(`scripted-answer: ${what} is an error`, async () => {
      failed(await server.review('scripted-answer', scripted(script)), /^internal server error: /);
    });
  }

  it('scripted-answer: unknown keys are ignored, and nulls count as missing', async () => {
    const answer = '{"accepted":true,"message":null,"code":null,"warnings":null,"mutated_object":null,"other":1}';
    const { allowed, status, warnings, patch } = await server.review('scripted-answer', scripted({ answer }));
    assert.deepEqual([allowed, status, warnings, patch], [true, undefined, null, undefined]);
  });

  it('scripted-answer: its log lines have its name, and cannot forge others', async () => {
    const log = 'first\n{"level":"error","msg":"forged"}';
    await server.review('scripted-answer', scripted({ answer: '{"accepted":true}', log }));
    assert.ok(!server.log.some((line) => line['msg'] === 'forged'));
  });

  it('are counted by verdict', async () => {
    const errors = { policy_name: 'trap', accepted: 'false', error_code: '500' };
    assert.equal(await server.metric('kubewarden_policy_evaluations_total', errors), 2);
    assert.ok((await server.metric('portcullis_policy_timeouts_total', { policy_name: 'bulk-memory-loop' })) >= 2);
  });
});
