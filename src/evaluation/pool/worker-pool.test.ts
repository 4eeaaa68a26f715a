import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { type ObjectReference, parsePolicies } from '../../engine/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import type { TableEntry } from '../evaluation-protocol.ts';
import type { PoolAnswer } from './review-job.ts';
import { moduleOf, silentCapabilities, tableChange, tableEntry } from '../testing/worker-tables.ts';
import type { FindResult } from '../watched-objects.ts';
import { type RestartReason, WorkerPool } from './worker-pool.ts';

/** Short, so that what is cut off is cut off soon. */
const TIMEOUT_SECONDS = 0.1;
/** Of guests that answer: a busy machine may not run them for longer than the limit of the others. */
const PATIENT = '  timeoutEvalSeconds: 10\n';

const accept = moduleOf('accept');
const scripted = moduleOf('scripted-answer');
const asksHost = moduleOf('wasi-host-call', 'wasi');
const loopsWhenAsked = moduleOf('loop-when-asked');

const raw = (request: object): Uint8Array => new Uint8Array(Buffer.from(JSON.stringify({ request })));

const podIn = (namespace: string): object => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: 'u',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    name: 'web',
    namespace,
    operation: 'CREATE',
    userInfo: {},
    object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace } },
  },
});

describe('the worker pool', () => {
  let pool: WorkerPool;
  const timeouts: string[] = [];
  const restarts: RestartReason[] = [];
  const applyFailures: string[] = [];
  let find: (object: ObjectReference) => FindResult;
  before(async () => {
    pool = new WorkerPool({
      size: 2,
      start: { defaultTimeoutSeconds: TIMEOUT_SECONDS },
      // Nobody answers: a guest that asks the host waits until it is cut off.
      connectCapabilities: silentCapabilities,
      log: () => undefined,
      find: async (object) => find(object),
      onTimeout: (policy) => timeouts.push(policy),
      onRestart: (reason) => restarts.push(reason),
      onApplyFailure: (id, message) => applyFailures.push(`${id}: ${message}`),
    });
    await pool.start();
    const waits = tableEntry('waits', asksHost, '  hostCapabilities: ["*"]\n');
    await pool.publish(
      tableChange([tableEntry('accept', accept, PATIENT), tableEntry('scripted', scripted, PATIENT), waits], {
        modules: [accept, scripted, asksHost],
      }),
    );
  });
  after(() => pool.stop());

  function ask(policy: string, request: object = { uid: 'u' }, requestTimeoutMs = 10_000): Promise<PoolAnswer> {
    return new Promise((resolve) => pool.submit('validate_raw', policy, raw(request), requestTimeoutMs, resolve));
  }
  const responseOf = ({ result }: PoolAnswer): { uid: string; allowed: boolean; status?: { message: string } } => {
    assert.ok(result.kind === 'response', result.kind);
    return JSON.parse(result.response) as { uid: string; allowed: boolean; status?: { message: string } };
  };
  const outcomeOf = ({ observed }: PoolAnswer): string | undefined => observed[0]?.observation.outcome;
  const message = (text: string): object => ({ uid: 'u', answer: JSON.stringify({ accepted: false, message: text }) });

  it('answers each review once, whatever the order', async () => {
    const answers = await Promise.all(Array.from({ length: 200 }, (_, index) => ask('scripted', message(`m${index}`))));
    assert.deepEqual(
      answers.map((answer) => responseOf(answer).status?.message),
      Array.from({ length: 200 }, (_, index) => `m${index}`),
    );
    assert.deepEqual([pool.held, pool.waiting], [0, 0]);
  });

  it('reports what each policy decided, also after others are gone', async () => {
    const [gone, stays] = ['gone', 'stays'].map((id) => tableEntry(id, accept, PATIENT));
    await pool.publish(
      tableChange(
        [gone, stays].filter((one) => one !== undefined),
        { modules: [accept] },
      ),
    );
    const observed = async (id: string): Promise<readonly string[]> => {
      // Each worker numbers its own observations.
      const answers = await Promise.all(Array.from({ length: 20 }, () => ask(id)));
      return [
        ...new Set(answers.flatMap((answer) => answer.observed.map(({ observation }) => observation?.policy ?? ''))),
      ];
    };
    assert.deepEqual(await observed('gone'), ['gone']);
    assert.deepEqual(await observed('stays'), ['stays']);
    await pool.publish(tableChange([], { removals: ['gone'] }));
    assert.deepEqual(await observed('stays'), ['stays']);
    assert.deepEqual(await observed('stays'), ['stays']);
    await pool.publish(tableChange([], { removals: ['stays'] }));
  });

  it('gives workers more at once while the main thread has much else to do', async () => {
    const reviews = 640;
    await Promise.all(Array.from({ length: 100 }, () => ask('accept')));
    let turns = 0;
    const isBusy = setInterval(() => {
      turns += 1;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }, 1);
    await Promise.all(Array.from({ length: reviews }, () => ask('accept')));
    clearInterval(isBusy);
    // Both workers get more than eight in each turn.
    assert.ok(turns < reviews / 16, `${turns} turns`);
  });

  it('reports what was observed, and how long it took', async () => {
    const { observed, evaluationMs, totalMs } = await ask('accept');
    assert.deepEqual(
      observed.map(({ observation: { policy, outcome } }) => [policy, outcome]),
      [['accept', 'verdict']],
    );
    assert.ok(observed.every((one) => one.evaluationMs > 0 && one.evaluationMs <= evaluationMs));
    assert.ok(totalMs >= evaluationMs);
  });

  describe('with a policy that has parameters', () => {
    const PROFILE = { apiVersion: 'example.com/v1', kind: 'Profile' };
    const KEY = { namespace: 'shared', name: 'main' };
    const publish = (text: string | undefined): void =>
      pool.publishWatched({ ...PROFILE, isAll: false, objects: [[KEY, text]] });
    const parameters = `  parameters:
    from: {resource: {apiVersion: example.com/v1, kind: Profile, name: main, namespace: shared}}
    overridable: [a]
    settingsExpression: "{'a': params.a}"
`;

    it('counts an object that is deleted between its lookup and the evaluation as absent', async () => {
      await pool.publish(tableChange([tableEntry('tenants', accept, PATIENT + parameters)]));
      find = () => {
        publish('{"a":1}');
        publish(undefined);
        return { state: 'published' };
      };
      const message = 'there are no parameters: Profile shared/main does not exist';
      assert.equal(responseOf(await ask('tenants')).status?.message, message);
      find = () => {
        publish('{"a":1}');
        return { state: 'published' };
      };
      assert.equal(responseOf(await ask('tenants')).allowed, true);
    });

    it('lets a tenant with ever new settings that are never validated not hold up the others', async () => {
      const from = parameters.replace(', namespace: shared', '');
      const entry = tableEntry('tenants', loopsWhenAsked, `  timeoutEvalSeconds: 2\n${from}`);
      await pool.publish(tableChange([entry], { modules: [loopsWhenAsked] }));
      const write = (namespace: string, a: string): void =>
        pool.publishWatched({
          ...PROFILE,
          isAll: false,
          objects: [[{ namespace, name: 'main' }, JSON.stringify({ a })]],
        });
      const review = (namespace: string): Uint8Array => new Uint8Array(Buffer.from(JSON.stringify(podIn(namespace))));
      const askFor = (namespace: string): Promise<PoolAnswer> =>
        new Promise((resolve) => pool.submit('validate', 'tenants', review(namespace), 10_000, resolve));
      write('bad', '~');
      // A busy machine may not validate them to the end.
      await askFor('bad');
      timeouts.splice(0);
      restarts.splice(0);
      const endless: string[] = [];
      for (let round = 0; round < 10; round += 1) {
        write('bad', `~${round}`);
        write('good', `${round}`);
        const answers = await Promise.all(['bad', 'bad', 'good'].map(askFor));
        assert.deepEqual(
          answers.map((answer) => responseOf(answer).allowed),
          [false, false, true],
        );
        endless.push(...answers.map((answer) => responseOf(answer).status?.message ?? ''));
      }
      assert.deepEqual(
        endless.filter((text) => text.includes('does not validate the settings in time')),
        [],
      );
      assert.match(
        endless[0] ?? '',
        /Profile bad\/main are invalid: the policy took too long .* validates others in \d+ s$/,
      );
      assert.deepEqual(timeouts, []);
      await pool.publish(tableChange([], { removals: ['tenants'] }));
    });
  });

  it('serves a change to all reviews that are submitted after it', async () => {
    for (let round = 0; round < 20; round += 1) {
      const isAccept = round % 2 === 0;
      void pool.publish(tableChange([tableEntry('swapped', isAccept ? accept : scripted, PATIENT)]));
      const answers = await Promise.all(Array.from({ length: 10 }, () => ask('swapped', message('scripted'))));
      assert.ok(
        answers.every((answer) => responseOf(answer).allowed === isAccept),
        `round ${round}`,
      );
    }
    assert.ok(pool.has('swapped'));
    await pool.publish(tableChange([], { removals: ['swapped'] }));
    assert.ok(!pool.has('swapped'));
    assert.deepEqual((await ask('swapped')).result, { kind: 'unknown-target' });
  });

  it('does not hold up other reviews behind a new version of a quick policy, and cuts it off', async () => {
    await pool.publish(tableChange([tableEntry('good', accept, PATIENT), tableEntry('turns', accept, PATIENT)]));
    for (let round = 0; round < 60; round += 1) {
      await Promise.all([ask('good'), ask('turns')]);
    }
    // The new version waits for a host that never answers; what the old one took says nothing about it.
    void pool.publish(tableChange([tableEntry('turns', asksHost, '  hostCapabilities: ["*"]\n')]));
    const order: string[] = [];
    const outcomes = await Promise.all(
      ['good', 'turns', 'good', 'good', 'good'].map(async (policy) => {
        const answer = await ask(policy);
        order.push(policy);
        return `${policy} ${outcomeOf(answer)}`;
      }),
    );
    assert.deepEqual(order, ['good', 'good', 'good', 'good', 'turns']);
    assert.deepEqual(new Set(outcomes), new Set(['good verdict', 'turns timeout']));
    assert.deepEqual(timeouts.splice(0), ['turns']);
    assert.deepEqual(restarts.splice(0), ['timeout']);
    await pool.publish(tableChange([], { removals: ['good', 'turns'] }));
  });

  it('renews its workers without losing a review', async () => {
    const asked = Promise.all(Array.from({ length: 50 }, (_, index) => ask('scripted', message(`m${index}`))));
    pool.renew();
    const answers = await asked;
    assert.deepEqual(
      answers.map((answer) => responseOf(answer).status?.message),
      Array.from({ length: 50 }, (_, index) => `m${index}`),
    );
    assert.deepEqual(restarts.splice(0), ['renewed', 'renewed']);
  });

  it('answers for an entry that failed, and for one that a worker cannot take up', async () => {
    const missing = { ...accept, digest: 'sha256:none' };
    await pool.publish(
      tableChange([
        { id: 'failed', failed: { message: 'it was never good', failurePolicy: 'Fail' } },
        { id: 'ignored', failed: { message: 'it was never good', failurePolicy: 'Ignore' } },
        tableEntry('missing', missing),
      ]),
    );
    assert.equal(responseOf(await ask('failed')).status?.message, 'it was never good');
    assert.equal(responseOf(await ask('ignored')).allowed, true);
    assert.match(responseOf(await ask('missing')).status?.message ?? '', /sha256:none/);
    assert.deepEqual(
      applyFailures.map((text) => text.split(':', 1)[0]),
      ['missing', 'missing'],
      'each worker tells',
    );
  });

  it('ends a worker whose guest is past its deadline, answers for it, and evaluates the rest elsewhere', async () => {
    const waiting = ask('waits');
    const others = await Promise.all(Array.from({ length: 50 }, () => ask('accept')));
    assert.ok(others.every((answer) => responseOf(answer).allowed));
    const answer = await waiting;
    assert.equal(outcomeOf(answer), 'timeout');
    assert.deepEqual(timeouts, ['waits']);
    assert.deepEqual(restarts, ['timeout']);
    // The worker that took its place has the whole table.
    const after = await Promise.all(Array.from({ length: 50 }, () => ask('scripted', message('x'))));
    assert.ok(after.every((one) => responseOf(one).status?.message === 'x'));
    assert.equal(pool.held, 0);
  });

  it('lets such policies hold all workers but one', async () => {
    const waiting = Array.from({ length: 4 }, () => ask('waits'));
    const others: PoolAnswer[] = [];
    let answeredMeanwhile = 0;
    for (let round = 0; round < 50; round += 1) {
      others.push(await ask('accept'));
      answeredMeanwhile += pool.held > 0 ? 1 : 0;
    }
    assert.ok(others.every((answer) => responseOf(answer).allowed));
    assert.ok(answeredMeanwhile > 0, 'others were answered while these were held');
    for (const answer of await Promise.all(waiting)) {
      assert.equal(outcomeOf(answer), 'timeout');
    }
  });

  it('answers a review of a slow policy when nobody waits for it any longer', async () => {
    const waiting = [ask('waits'), ask('waits', {}, 50), ask('waits', {}, 50)];
    const answers = await Promise.all(waiting);
    assert.ok(answers.every((answer) => outcomeOf(answer) === 'timeout'));
    assert.deepEqual([pool.held, pool.waiting], [0, 0]);
  });

  it('leaves a worker to others while a policy is slow, though each of its reviews ends in time', async () => {
    const works = moduleOf('slow');
    await pool.publish(tableChange([tableEntry('works', works, PATIENT)], { modules: [works] }));
    let isOver = false;
    let answers = 0;
    const asking = Array.from({ length: 6 }, async () => {
      while (!isOver) {
        assert.equal(responseOf(await ask('works')).allowed, true);
        answers += 1;
      }
    });
    const quick = async (reviews: number): Promise<number> => {
      const before = answers;
      for (let review = 0; review < reviews; review += 1) {
        assert.equal(responseOf(await ask('accept')).allowed, true);
      }
      return answers - before;
    };
    // Until the policy is known to take long.
    await quick(5);
    const meanwhile = await quick(30);
    isOver = true;
    await Promise.all(asking);
    assert.ok(
      meanwhile < 30,
      `${meanwhile} slow reviews ended while 30 quick ones were answered: these waited for them`,
    );
    await pool.publish(tableChange([], { removals: ['works'] }));
  });

  it('does not hold what an older version did against a new one', async () => {
    const waits = (id: string): TableEntry => tableEntry(id, asksHost, '  hostCapabilities: ["*"]\n');
    await pool.publish(tableChange([waits('mended')]));
    await ask('mended');
    await pool.publish(tableChange([tableEntry('mended', accept, PATIENT)]));
    const waiting = ask('waits');
    assert.equal(responseOf(await ask('mended')).allowed, true);
    assert.equal(pool.held, 1, 'it is not in the lane of slow policies, which is full');
    await waiting;
  });

  it('starts no module before a review needs it, neither in workers nor in their replacements', async () => {
    const loops = moduleOf('loop-in-start');
    const failed = applyFailures.length;
    await pool.publish(tableChange([tableEntry('loops', loops, PATIENT)], { modules: [loops] }));
    pool.renew();
    await Promise.all(Array.from({ length: 20 }, () => ask('accept')));
    const started = applyFailures.slice(failed).filter((text) => text.startsWith('loops'));
    assert.deepEqual(started, [], 'a start that does not end fails');
    // With the review, and by its limits.
    assert.equal(outcomeOf(await ask('loops')), 'timeout');
    assert.equal(timeouts.at(-1), 'loops');
    await pool.publish(tableChange([], { removals: ['loops'], retired: [loops.digest] }));
  });

  it('cuts off only the member of a group that is past its deadline', async () => {
    const [definition] = parsePolicies(
      `
group:
  expression: waits() || good()
  message: neither
  policies:
    waits: {module: "file:///w.wasm", hostCapabilities: ["*"]}
    good: {module: "file:///m.wasm", timeoutEvalSeconds: 10}
`,
      'policies.yml',
    ).policies;
    assert.ok(definition);
    const digests = { 'file:///m.wasm': accept.digest, 'file:///w.wasm': asksHost.digest };
    await pool.publish(tableChange([{ id: 'group', definition, digests }]));
    const cutOff = restarts.length;
    assert.equal(responseOf(await ask('group')).allowed, true);
    assert.equal(restarts.length, cutOff + 1);
    assert.equal(timeouts.at(-1), 'group');
  });

  it('refuses more bytes than it may hold', async () => {
    const body = new Uint8Array(100 * 1024 * 1024);
    const first = new Promise((resolve) => pool.submit('validate_raw', 'accept', body, 1_000, resolve));
    const second = new Promise((resolve) => pool.submit('validate_raw', 'accept', body, 1_000, resolve));
    assert.throws(() => pool.submit('validate_raw', 'accept', body, 1_000, () => undefined), { code: 'overloaded' });
    await Promise.all([first, second]);
    assert.equal(pool.held, 0);
    assert.equal(responseOf(await ask('accept')).allowed, true);
  });
});

describe('the policies of one namespace', () => {
  const MATCH: PolicyMatch = {
    bucket: 'validating.fail.equivalent.namespaced.v1',
    isMutating: false,
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    rules: [],
    namespaceSelector: {},
    objectSelector: {},
    matchConditions: [],
    timeoutSeconds: 10,
  };
  let pool: WorkerPool;
  const restarts: RestartReason[] = [];
  before(async () => {
    pool = new WorkerPool({
      size: 4,
      start: { defaultTimeoutSeconds: 3 },
      connectCapabilities: silentCapabilities,
      log: () => undefined,
      onRestart: (reason) => restarts.push(reason),
    });
    await pool.start();
    const waits = (namespace: string, name: string): TableEntry => ({
      ...tableEntry(`kw.ap.${namespace}.${name}`, asksHost, '  hostCapabilities: ["*"]\n'),
      match: { ...MATCH, namespace },
    });
    const untried = ['a', 'b', 'c', 'd'].map((name) => waits('untried', name));
    const entries = [
      ...untried,
      waits('tenant', 'a'),
      waits('tenant', 'b'),
      waits('other', 'a'),
      tableEntry('quick', accept),
    ];
    await pool.publish(tableChange(entries, { modules: [accept, asksHost] }));
  });
  after(() => pool.stop());

  const ask = (policy: string): Promise<PoolAnswer> =>
    new Promise((resolve) => pool.submit('validate_raw', policy, raw({ uid: 'u' }), 10_000, resolve));

  it('never hold more than half of the workers while nobody has tried them, by their own paths as well', async () => {
    const held = ['a', 'b', 'c', 'd'].map((name) => ask(`kw.ap.untried.${name}`));
    await ask('quick');
    assert.deepEqual(restarts, [], 'no worker had to be freed');
    await Promise.all(held);
    restarts.splice(0);
  });

  it('never hold more than half of the workers, however many they are; others use the rest', async () => {
    const order: string[] = [];
    const asked = (policy: string): Promise<unknown> => ask(policy).then(() => order.push(policy));
    // The first two make the namespace known; all others wait for room in its half.
    const first = [asked('kw.ap.tenant.a'), asked('kw.ap.tenant.a')];
    await new Promise((resolve) => setTimeout(resolve, 300));
    const more = ['b', 'a', 'b'].map((name) => asked(`kw.ap.tenant.${name}`));
    const other = asked('kw.ap.other.a');
    for (let round = 0; round < 20; round += 1) {
      await ask('quick');
    }
    await Promise.all(first);
    await other;
    await Promise.all(more);
    assert.deepEqual(order.toSorted((a, b) => a.localeCompare(b)).length, 6);
    assert.ok(
      order.indexOf('kw.ap.other.a') < order.indexOf('kw.ap.tenant.b'),
      'the other namespace did not wait for them',
    );
    assert.ok(!restarts.includes('held'), 'no worker had to be freed');
  });

  it(
    'have workers that give way to others, replacements included',
    { skip: process.platform !== 'linux' },
    async () => {
      const before = backgroundThreads('evaluation');
      assert.equal(before.length, 2, 'half of four');
      pool.renew();
      const replacements = (): number => backgroundThreads('evaluation').filter((id) => !before.includes(id)).length;
      const deadline = performance.now() + 10_000;
      while (replacements() < 2 && performance.now() < deadline) {
        await ask('quick');
      }
      assert.equal(replacements(), 2);
    },
  );
});

/** The ids of those threads of this process with a name that give way to others. */
function backgroundThreads(name: string): readonly string[] {
  const tasks = '/proc/self/task';
  return readdirSync(tasks).filter((id) => {
    try {
      return readFileSync(`${tasks}/${id}/comm`, 'utf8').trim() === name && getPriority(Number(id)) > 0;
    } catch {
      // It has just ended.
      return false;
    }
  });
}

describe('a worker pool that has stopped', () => {
  it('takes nothing more, and waits for nothing', async () => {
    const pool = new WorkerPool({
      size: 1,
      start: { defaultTimeoutSeconds: TIMEOUT_SECONDS },
      connectCapabilities: silentCapabilities,
      log: () => undefined,
    });
    await pool.start();
    const published = pool.publish(tableChange([tableEntry('accept', accept)], { modules: [accept] }));
    await pool.stop();
    await published;
    assert.throws(() => pool.submit('validate_raw', 'accept', raw({}), 1_000, () => undefined), { code: 'stopping' });
  });
});
