import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { parsePolicies } from '../engine/index.ts';
import { builtinVersion } from '../modules/index.ts';
import type { PolicyMatch } from '../resources/index.ts';
import { compileModule } from '../wasm/index.ts';
import { wat } from '../wasm/testing/index.ts';

import type { CompiledPolicyModule } from './compiled-module.ts';
import { DirectEvaluation, MAX_DIRECT_ANSWER_BYTES, MAX_DIRECT_BYTES } from './direct-evaluation.ts';
import { MAX_DIRECT_SETTINGS } from './direct-modules.ts';
import type { LogMessage, TableEntry } from './evaluation-protocol.ts';
import { type Answer, ReviewJob } from './review-job.ts';
import { moduleOf, tableChange, tableEntry } from './testing/worker-tables.ts';
import { WorkerPool } from './worker-pool.ts';

const BUCKET = 'validating.fail.equivalent.cluster.v1';
/** Reviews until a bucket is known to be quick, and what it takes is compiled in both threads. */
const WARM_UP = 60;
/** Reviews by which it shows whether any is evaluated here. */
const TRIES = 200;
/** Until something has happened that others who have the processors may put off. */
const MAX_ROUNDS = 10;
/** Between two looks whether it is evaluated here. Milliseconds. */
const PAUSE_MS = 50;

const cel: CompiledPolicyModule = { mode: 'builtin', name: 'cel', digest: builtinVersion('cel') };
/** A module that only workers run. */
const accept = moduleOf('wasi-accept', 'wasi');
const scripted = moduleOf('scripted-answer');
const looping = moduleOf('loop-when-asked');
const calling = moduleOf('echo-host-call');
const forgetful = moduleOf('stateful-segments');
const rego = moduleOf('../../../examples/host-namespaces/policy', 'opa');
const podSecurity: CompiledPolicyModule = {
  mode: 'builtin',
  name: 'pod-security',
  digest: builtinVersion('pod-security'),
};

interface CelSettings {
  readonly expression: string;
  readonly mode?: 'monitor';
  readonly match?: Partial<PolicyMatch>;
  /** An expression of what it applies to objects. */
  readonly applies?: string;
}

function match(rest: Partial<PolicyMatch> = {}): PolicyMatch {
  return {
    bucket: BUCKET,
    isMutating: false,
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    rules: [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['things'], scope: '*' }],
    namespaceSelector: {},
    objectSelector: {},
    matchConditions: [],
    timeoutSeconds: 10,
    ...rest,
  };
}

function celEntry(name: string, settings: CelSettings): TableEntry {
  const { expression, mode = 'protect', applies } = settings;
  const mutations = [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression: applies } }];
  const validations = [{ expression, message: `not ${name}` }];
  const declared = {
    module: 'builtin:cel',
    policyMode: mode,
    allowedToMutate: applies !== undefined,
    settings: applies === undefined ? { validations } : { mutations },
  };
  const id = `kw.cap.${name}`;
  const [definition] = parsePolicies(JSON.stringify({ [id]: declared }), 'policies.yml').policies;
  assert.ok(definition);
  const granted = definition.kind === 'policy' ? { ...definition, hostCapabilities: ['*'] } : definition;
  return { id, definition: granted, digests: { 'builtin:cel': cel.digest }, match: match(settings.match) };
}

function bodyOf(data: object, namespace = 'shop'): Uint8Array {
  const request = {
    uid: 'u',
    kind: { group: '', version: 'v1', kind: 'Thing' },
    resource: { group: '', version: 'v1', resource: 'things' },
    name: 'a',
    namespace,
    operation: 'CREATE',
    userInfo: { username: 'somebody' },
    object: { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a', namespace }, ...data },
  };
  const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request };
  return new Uint8Array(Buffer.from(JSON.stringify(review)));
}

const small = bodyOf({ items: [1] });
/** Three loops in one another: nothing for one item, and more than the cost limit for many. */
const LOOPS = 'object.items.all(a, object.items.all(b, object.items.all(c, a + b + c >= 0)))';

describe('reviews that the main thread evaluates', () => {
  let pool: WorkerPool;
  let logged: LogMessage[];
  const published = new Set<string>();
  before(async () => {
    pool = new WorkerPool({
      size: 1,
      start: { defaultTimeoutSeconds: 2, hasBuckets: true },
      // Nobody answers: whoever asks waits until the watchdog ends it.
      connectCapabilities: () => ({ port: new MessageChannel().port2, answered: new SharedArrayBuffer(4) }),
      log: (entry) => logged.push(entry),
      findNamespace: (name) => {
        pool.tellNamespaces({ isAll: false, namespaces: [[name, { env: name === 'known' ? 'prod' : 'test' }]] });
        return Promise.resolve(undefined);
      },
    });
    await pool.start();
    await pool.publish(
      tableChange([], { modules: [cel, podSecurity, accept, scripted, looping, calling, forgetful, rego] }),
    );
  });
  beforeEach(() => {
    logged = [];
  });
  afterEach(async () => {
    await pool.publish(tableChange([], { removals: [...published] }));
    published.clear();
  });
  after(() => pool.stop());

  async function publish(...entries: readonly TableEntry[]): Promise<void> {
    entries.forEach(({ id }) => published.add(id));
    await pool.publish(tableChange(entries));
  }

  /** The answer, and whether it was there before anything else could happen: then this thread gave it. */
  async function ask(
    body: Uint8Array,
    bucket = BUCKET,
  ): Promise<{ readonly answer: Answer; readonly isHere: boolean }> {
    // A turn of the event loop of its own.
    await new Promise((resolve) => setImmediate(resolve));
    let isHere = true;
    const answer = new Promise<Answer>((resolve) => {
      let isSubmitted = false;
      pool.submit('admit', bucket, body, 10_000, (one) => {
        isHere = !isSubmitted;
        resolve(one);
      });
      isSubmitted = true;
    });
    return { answer: await answer, isHere };
  }

  async function warmUp(body = small, bucket = BUCKET): Promise<void> {
    for (let round = 0; round < WARM_UP; round += 1) {
      await ask(body, bucket);
    }
  }

  /** Whether this thread ever evaluates such reviews. */
  async function isEverHere(body = small, bucket = BUCKET): Promise<boolean> {
    for (let round = 0; round < TRIES; round += 1) {
      if ((await ask(body, bucket)).isHere) {
        return true;
      }
    }
    return false;
  }

  /** Waits until this thread evaluates such reviews: where others have the processors, many take long, and time is lost. */
  async function untilHere(body = small, bucket = BUCKET): Promise<void> {
    while (!(await isEverHere(body, bucket))) {
      await sleep(PAUSE_MS);
    }
  }

  const told = ({ status, body, observed = [] }: Answer): object => ({
    status,
    response: (JSON.parse(body) as { response: object }).response,
    observed: observed.map(({ observation }) => observation),
  });

  it('are those of a bucket that is known to be quick, with the very answers of workers', async () => {
    await publish(
      celEntry('one', { expression: 'object.items.size() < 2' }),
      celEntry('two', { expression: 'object.items.size() != 3' }),
    );
    const bodies = [1, 2, 3, 4].map((length) => bodyOf({ items: Array.from({ length }, () => 0) }));
    const first = await ask(bodies[0] ?? small);
    assert.equal(first.isHere, false, 'nobody knows how long it takes');
    const answers = new Map<string, { readonly here: Set<string>; readonly inWorkers: Set<string> }>();
    const isComplete = (): boolean =>
      [...answers.values()].every(({ here, inWorkers }) => here.size > 0 && inWorkers.size > 0);
    for (let round = 0; round < TRIES || !isComplete(); round += 1) {
      const asked = bodies.map((body) => ({ body, answer: ask(body) }));
      for (const { body, answer } of [...asked, ...bodies.map((one) => ({ body: one, answer: undefined }))]) {
        const { answer: one, isHere } = await (answer ?? ask(body));
        const key = Buffer.from(body).toString();
        const seen = answers.get(key) ?? { here: new Set(), inWorkers: new Set() };
        answers.set(key, seen);
        (isHere ? seen.here : seen.inWorkers).add(JSON.stringify(told(one)));
      }
    }
    for (const { here, inWorkers } of answers.values()) {
      assert.equal(here.size, 1);
      assert.deepEqual(here, inWorkers);
    }
    assert.equal(pool.held, 0);
  });

  it('are one in a turn: what else has arrived is for workers', async () => {
    await publish(celEntry('one', { expression: 'true' }));
    await warmUp();
    for (let round = 0; round < TRIES; round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      const [, second] = await Promise.all([ask(small), ask(small)]);
      assert.equal(second.isHere, false);
    }
  });

  it('are none that a module of somebody else is for, and others of its bucket', async () => {
    const labelled = bodyOf({ metadata: { name: 'a', namespace: 'shop', labels: { module: 'yes' } }, items: [1] });
    const conditions = [{ name: 'never', expression: 'false' }];
    const other = {
      ...tableEntry('kw.cap.module', accept),
      match: match({ objectSelector: { matchLabels: { module: 'yes' } }, matchConditions: conditions }),
    };
    await publish(celEntry('one', { expression: 'true' }), other);
    await warmUp();
    await untilHere();
    for (let round = 0; round < TRIES; round += 1) {
      const { answer, isHere } = await ask(labelled);
      assert.deepEqual([isHere, answer.status, answer.observed?.length], [false, 200, 1]);
    }
    await untilHere();
    await pool.publish(tableChange([], { removals: [other.id] }));
    await warmUp();
    await untilHere(labelled);
    // The same policy, of another module.
    await publish({ ...tableEntry('kw.cap.one', accept), match: other.match });
    await warmUp();
    assert.equal(await isEverHere(labelled), false);
    await warmUp();
    await untilHere();
  });

  it('are those that no policy is for, whatever policies there are, once that is known to be quick', async () => {
    const otherwise = {
      rules: [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['others'], scope: '*' }],
    } as const;
    const changing = { bucket: 'mutating.fail.equivalent.cluster.v1', isMutating: true };
    await publish(celEntry('changing', { expression: 'true', match: { ...otherwise, ...changing } }));
    await warmUp(small, changing.bucket);
    await untilHere(small, changing.bucket);
    const bucket = 'validating.fail.exact.cluster';
    assert.equal(await isEverHere(small, bucket), false, 'nobody has policies in it');
    const ofModule = { ...tableEntry('kw.cap.module', accept), match: match({ ...otherwise, bucket }) };
    await publish(ofModule);
    await warmUp(small, bucket);
    await untilHere(small, bucket);
    assert.equal(await isEverHere(small, `validating.${ofModule.id}`), false, 'it is asked for alone');
  });

  it('are neither large, nor for policies with long settings', async () => {
    await publish(celEntry('one', { expression: 'true' }));
    await warmUp();
    assert.equal(await isEverHere(bodyOf({ text: 'x'.repeat(MAX_DIRECT_BYTES) })), false);
    const long = `'${'x'.repeat(MAX_DIRECT_SETTINGS)}' != ''`;
    await publish(celEntry('two', { expression: long }));
    await warmUp();
    assert.equal(await isEverHere(), false);
    await publish(celEntry('two', { expression: 'true' }));
    await warmUp();
    await untilHere();
    await publish(
      celEntry('two', { expression: 'true', match: { matchConditions: [{ name: 'c', expression: long }] } }),
    );
    await warmUp();
    assert.equal(await isEverHere(), false);
  });

  const TENANTS = 'validating.fail.equivalent.namespaced.v1';
  const ofTenant = (rest: Partial<PolicyMatch> = {}): PolicyMatch =>
    match({ bucket: TENANTS, namespace: 'shop', ...rest });
  const elsewhere = bodyOf({ items: [1] }, 'other');

  const STANDARDS = '  settings: {enforce: baseline}\n';
  const standards = (name: string, rest: Partial<PolicyMatch> = {}): TableEntry => ({
    ...tableEntry(`kw.cap.${name}`, podSecurity, STANDARDS),
    match: ofTenant(rest),
  });

  it('are those by small expressions and standards of tenants, and of nobody whose neighbours wrote others', async () => {
    const expressions = celEntry('expressions', { expression: 'object.items.all(i, i > 1)', match: ofTenant() });
    await publish(standards('own'), expressions, standards('next', { namespace: 'other' }));
    const first = await ask(small, TENANTS);
    await warmUp(small, TENANTS);
    await untilHere(small, TENANTS);
    assert.deepEqual(told((await ask(small, TENANTS)).answer), told(first.answer));
    const conditions = [{ name: 'always', expression: 'true' }];
    // For nothing that is asked about, but who would read all of it?
    const long = Array.from({ length: MAX_DIRECT_SETTINGS }, () => 'others');
    const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: long, scope: '*' }] as const;
    for (const [what, other] of Object.entries({
      expressions: celEntry('other', { expression: "object.kind.matches('Thing')", match: ofTenant() }),
      conditions: standards('other', { matchConditions: conditions }),
      long: standards('other', { rules }),
      module: { ...tableEntry('kw.cap.other', scripted), match: ofTenant() },
    })) {
      await publish(other);
      await warmUp(small, TENANTS);
      assert.equal(await isEverHere(small, TENANTS), false, what);
      await warmUp(elsewhere, TENANTS);
      await untilHere(elsewhere, TENANTS);
    }
  });

  it('are none that might take long at once, which nobody could interrupt', () => {
    const expression = 'object.items.size() == 1 || object.text.matches(object.pattern)';
    const direct = new DirectEvaluation({ defaultTimeoutSeconds: 2, log: () => undefined });
    direct.apply(tableChange([celEntry('dear', { expression })], { modules: [cel] }));
    const rest = { seq: 1, route: 'admit', target: BUCKET, patienceMs: 10_000, done: () => undefined } as const;
    const reviewOf = (pattern: string): string | undefined => {
      const body = bodyOf({ items: [], text: 'a'.repeat(20_000), pattern });
      return direct.review(new ReviewJob({ ...rest, body }))?.type;
    };
    const tries = Array.from({ length: TRIES });
    assert.ok(tries.some(() => reviewOf('b') === 'bucket'));
    // That one is as quick, but nobody knows before.
    assert.ok(tries.every(() => reviewOf('b'.repeat(60)) === undefined));
    assert.ok(tries.some(() => reviewOf('b') === 'bucket'));
  });

  it('are such as change objects, with the very patch of workers', async () => {
    const bucket = 'mutating.fail.equivalent.cluster.v1';
    const applies = 'Object{metadata: Object.metadata{labels: {"seen": "yes"}}}';
    await publish(celEntry('changing', { expression: '', applies, match: { bucket, isMutating: true } }));
    const { answer: first } = await ask(small, bucket);
    await warmUp(small, bucket);
    await untilHere(small, bucket);
    const { answer } = await ask(small, bucket);
    assert.deepEqual(told(answer), told(first));
    const { patch } = (JSON.parse(answer.body) as { response: { patch: string } }).response;
    assert.match(Buffer.from(patch, 'base64').toString(), /"seen":"yes"/);
  });

  /** Asks with an object until this thread answers; the answer of a worker before, and that one. */
  async function answersOf(body: Uint8Array): Promise<{ readonly byWorker: Answer; readonly here: Answer }> {
    const { answer: byWorker } = await ask(body);
    for (;;) {
      await untilHere(body);
      const { answer, isHere } = await ask(body);
      if (isHere) {
        return { byWorker, here: answer };
      }
    }
  }

  it('are those by modules that give a verdict, with the very answers of workers', async () => {
    await publish({ ...tableEntry('kw.cap.scripted', scripted), match: match() });
    for (const answer of ['{"accepted":true,"warnings":["w"]}', '{"accepted":false,"message":"no","code":418}']) {
      const { byWorker, here } = await answersOf(bodyOf({ answer }));
      assert.deepEqual(told(here), told(byWorker));
    }
  });

  it('are none by modules that give none here: they fail, say too much, or use up their fuel', async () => {
    await publish(
      { ...tableEntry('kw.cap.scripted', scripted), match: match() },
      { ...tableEntry('kw.cap.looping', looping, '  timeoutEvalSeconds: 1\n'), match: match() },
    );
    const good = bodyOf({ answer: '{"accepted":true}' });
    for (const [object, expected] of [
      [{ answer: 'garbage' }, /answer cannot be read/],
      [{ answer: '{"accepted":true}', code: '0' }, /without saying why/],
      [{ answer: '{"accepted":true}', text: '~' }, /exceeded the allowed execution time/],
    ] as const) {
      await warmUp(good);
      await untilHere(good);
      const { answer, isHere } = await ask(bodyOf(object));
      assert.equal(isHere, false);
      assert.match(answer.body, expected);
    }
  });

  it('are none by groups of which a member gives none here', async () => {
    const text = JSON.stringify({
      'kw.cap.group': {
        policies: {
          a: { module: 'file:///m.wasm' },
          b: { module: 'builtin:cel', settings: { validations: [{ expression: 'false' }] } },
        },
        expression: 'a() && b()',
        message: 'no',
      },
    });
    const [definition] = parsePolicies(text, 'policies.yml').policies;
    assert.ok(definition);
    const digests = { 'file:///m.wasm': scripted.digest, 'builtin:cel': cel.digest };
    await publish({ id: definition.id, definition, digests, match: match() });
    const good = bodyOf({ answer: '{"accepted":true}' });
    await warmUp(good);
    await untilHere(good);
    const { answer, isHere } = await ask(bodyOf({ answer: 'garbage' }));
    assert.equal(isHere, false);
    assert.match(answer.body, /cannot be read/);
  });

  it('are none by modules that need a new instance for each, or have the host do much', async () => {
    for (const module of [forgetful, rego]) {
      await publish({ ...tableEntry('kw.cap.other', module), match: match() });
      await warmUp();
      assert.equal(await isEverHere(), false);
    }
  });

  it('are none by modules that take long to start, have much memory, or say much', () => {
    const ofRounds = (rounds: number, pages = 2, answer = 17): CompiledPolicyModule => {
      const bytes = wat(`(module (import "wapc" "__guest_response" (func $answer (param i32 i32)))
        (memory ${pages}) (data (i32.const 0) "{\\"accepted\\":true}")
        (func (export "wapc_init") (local $i i32)
          (loop $l (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const ${rounds})))))
        (func (export "__guest_call") (param i32 i32) (result i32)
          (memory.fill (i32.const 17) (i32.const 32) (i32.const ${answer}))
          (call $answer (i32.const 0) (i32.const ${answer})) (i32.const 1)))`);
      const compiled = compileModule(bytes, { memoryLimitBytes: 64 * 1024 * 1024, isolation: 'restore' });
      return { mode: 'kubewarden-wapc', digest: `sha256:${rounds}`, compiled };
    };
    const outcomeOf = (module: CompiledPolicyModule): string | undefined => {
      const direct = new DirectEvaluation({ defaultTimeoutSeconds: 2, log: () => undefined });
      const entry = { ...tableEntry('kw.cap.started', module), match: match() };
      direct.apply(tableChange([entry], { modules: [module] }));
      const rest = { seq: 1, route: 'admit', target: BUCKET, body: small, patienceMs: 10_000 } as const;
      const outcomes = Array.from({ length: MAX_ROUNDS }, () =>
        direct.review(new ReviewJob({ ...rest, done: () => undefined })),
      );
      return outcomes.find((outcome) => outcome !== undefined)?.type;
    };
    assert.equal(outcomeOf(ofRounds(1)), 'bucket');
    assert.equal(outcomeOf(ofRounds(2_000_000)), undefined);
    assert.equal(outcomeOf(ofRounds(1, 1_000)), undefined);
    assert.equal(outcomeOf(ofRounds(1, 2, MAX_DIRECT_ANSWER_BYTES)), 'bucket');
    assert.equal(outcomeOf(ofRounds(1, 2, MAX_DIRECT_ANSWER_BYTES + 1)), undefined);
  });

  it('start no module that only workers run', () => {
    const { Instance } = WebAssembly;
    let started = 0;
    WebAssembly.Instance = class extends Instance {
      constructor(...args: ConstructorParameters<typeof Instance>) {
        super(...args);
        started += 1;
      }
    };
    try {
      const direct = new DirectEvaluation({ defaultTimeoutSeconds: 2, log: () => undefined });
      const entry = tableEntry('kw.cap.scripted', scripted);
      const asking = '  contextAwareResources: [{apiVersion: v1, kind: Pod}]\n';
      const reading = { ...tableEntry('kw.cap.reading', scripted, asking), match: match() };
      direct.apply(tableChange([{ ...entry, match: ofTenant() }, reading], { modules: [scripted] }));
      assert.equal(started, 0);
      direct.apply(tableChange([{ ...entry, match: match() }]));
      assert.equal(started, 1);
    } finally {
      WebAssembly.Instance = Instance;
    }
  });

  it('are others while a policy of their bucket is slow, or was once', () => {
    const direct = new DirectEvaluation({ defaultTimeoutSeconds: 2, log: () => undefined });
    const one = standards('one');
    direct.apply(tableChange([one, standards('other', { namespace: 'other' })], { modules: [podSecurity] }));
    const rest = { seq: 1, route: 'admit', target: TENANTS, patienceMs: 10_000, done: () => undefined } as const;
    const outcomeOf = (body: Uint8Array): string | undefined =>
      Array.from({ length: MAX_ROUNDS }, () => direct.review(new ReviewJob({ ...rest, body }), [one.id])).find(
        (outcome) => outcome !== undefined,
      )?.type;
    assert.deepEqual([outcomeOf(small), outcomeOf(elsewhere)], [undefined, 'bucket']);
    const job = new ReviewJob({ ...rest, body: small });
    direct.took(job, [], 10_000);
    assert.equal(direct.mayTake(job), false);
    Array.from({ length: MAX_ROUNDS }, () => direct.took(job, [], 0));
    direct.endTurn();
    return new Promise<void>((resolve) => {
      setImmediate(() => resolve(assert.equal(direct.mayTake(job), true)));
    });
  });

  it('are those by modules that log, and none by modules that ask', async () => {
    const entry = tableEntry('kw.cap.calling', calling);
    assert.ok('definition' in entry && entry.definition.kind === 'policy');
    const { definition } = entry;
    await publish({ ...entry, definition: { ...definition, hostCapabilities: ['*'] }, match: match() });
    const call = { binding: 'kubewarden', ns: 'tracing', op: 'log', payload: { data: { message: 'hello' } } };
    const { byWorker, here } = await answersOf(bodyOf(call));
    assert.deepEqual(told(here), told(byWorker));
    logged = [];
    await ask(bodyOf(call));
    assert.equal(logged.length, 1);
    const asking = { ...call, ns: 'crypto', op: 'v1/is_certificate_trusted', payload: {} };
    const { answer, isHere } = await ask(bodyOf(asking));
    assert.equal(isHere, false);
    assert.doesNotMatch(answer.body, /only workers ask the host/);
  });

  it('are given up when they take long, whatever takes it, and answered by a worker', async () => {
    const conditions = [{ name: 'dear', expression: `${LOOPS} || true` }];
    for (const [name, bucket, settings] of [
      ['policy', 'validating.fail.exact.cluster', { expression: LOOPS }],
      ['tenant', TENANTS, { expression: LOOPS }],
      ['watched', 'validating.ignore.exact.cluster', { expression: LOOPS, mode: 'monitor' }],
      ['condition', 'validating.ignore.equivalent.cluster.v1', { expression: 'true' }],
    ] as const) {
      const rest = {
        bucket,
        ...(name === 'condition' ? { matchConditions: conditions } : {}),
        ...(name === 'tenant' ? { namespace: 'shop' } : {}),
      };
      await publish(celEntry(name, { ...settings, match: rest }));
      await warmUp(small, bucket);
      await untilHere(small, bucket);
      const dear = bodyOf({ items: Array.from({ length: 400 }, (_, index) => index) });
      logged = [];
      const { answer, isHere } = await ask(dear, bucket);
      assert.equal(isHere, false);
      assert.match(JSON.stringify(logged) + answer.body, /cost limit exceeded|work limit exceeded|cost budget/);
      assert.doesNotMatch(JSON.stringify(logged) + answer.body, /interrupted/);
      const monitored = logged.filter(({ message }) => message === 'policy evaluation (monitor mode)');
      assert.equal(monitored.length, name === 'watched' ? 1 : 0);
    }
  });

  it('are none for a while, after one took too much of the time that may be lost', async () => {
    const direct = new DirectEvaluation({ defaultTimeoutSeconds: 2, log: () => undefined });
    // To compile them takes longer than all that may be lost at once.
    const patterns = Array.from({ length: 90 }, (_, index) => `'a'.matches('(a{1,900}${index}){1}')`);
    const dear = celEntry('dear', { expression: `object.items.size() > 0 || ${patterns.join(' || ')}` });
    direct.apply(tableChange([dear], { modules: [cel] }));
    const rest = { seq: 1, route: 'admit', patienceMs: 10_000, done: () => undefined } as const;
    const jobFor = (target: string): ReviewJob => new ReviewJob({ ...rest, target, body: small });
    assert.equal(direct.mayTake(jobFor(BUCKET)), false);
    const large = new ReviewJob({ ...rest, target: BUCKET, body: new Uint8Array(MAX_DIRECT_BYTES + 1) });
    direct.took(large, [], 0);
    assert.equal(direct.mayTake(jobFor(BUCKET)), false, 'large reviews say nothing of small ones');
    direct.took(jobFor(BUCKET), [], 0);
    assert.equal(direct.mayTake(jobFor(BUCKET)), true);
    assert.equal(direct.review(jobFor(BUCKET)), undefined);
    direct.endTurn();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(direct.mayTake(jobFor(BUCKET)), false);
    const other = 'validating.ignore.exact.cluster';
    direct.apply(tableChange([celEntry('other', { expression: 'true', match: { bucket: other } })]));
    direct.took(jobFor(other), [], 0);
    assert.equal(direct.mayTake(jobFor(other)), false);
  });

  it('are of no policy that asks the host', async () => {
    const asks = "!has(object.asks) || authorizer.group('').resource('pods').check('get').allowed()";
    await publish(celEntry('asks', { expression: asks }));
    await warmUp();
    let rounds = 0;
    do {
      await untilHere();
      const { answer, isHere } = await ask(bodyOf({ asks: true }));
      assert.equal(isHere, false);
      assert.doesNotMatch(answer.body, /only workers ask the host/);
      await warmUp();
      rounds += 1;
    } while (rounds < MAX_ROUNDS && (await isEverHere()));
    assert.ok(rounds < MAX_ROUNDS);
  });

  it('wait for a namespace that is not known, as others do', async () => {
    const namespaceSelector = { matchLabels: { env: 'prod' } };
    await publish(celEntry('one', { expression: 'false', match: { namespaceSelector } }));
    await warmUp(bodyOf({}, 'known'));
    await untilHere(bodyOf({}, 'known'));
    const { answer, isHere } = await ask(bodyOf({}, 'other'));
    assert.equal(isHere, false);
    assert.match(answer.body, /"allowed":true/);
  });

  it('log once', async () => {
    await publish(celEntry('watched', { expression: 'false', mode: 'monitor' }));
    await warmUp();
    for (let round = 0; round < TRIES; round += 1) {
      logged = [];
      await ask(small);
      assert.deepEqual(
        logged.map(({ message }) => message),
        ['policy evaluation (monitor mode)'],
      );
    }
  });
});
