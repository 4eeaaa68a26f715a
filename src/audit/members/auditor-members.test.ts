import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ClusterError } from '../../cluster/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import { LEASES } from '../../runtime/index.ts';
import { REPORT_LABELS } from '../access-rules/report-labels.ts';
import { SteppedClock } from '../testing/stepped-clock.ts';
import { AuditorMembers } from './auditor-members.ts';

const NAMESPACE = 'default';
const NAMESPACES = ['', ...Array.from({ length: 15 }, (_, index) => `team-${index}`)];
const TIMES = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };
const log = pino({ level: 'silent' });
/** Time after which each change has been noticed, and all that came may write. */
const CALM_MS = 40_000;

type Line = 'open' | 'refused' | 'silent';

class TestMember {
  readonly members: AuditorMembers;
  line: Line = 'open';
  isDead = false;
  requests = 0;
  readonly changes: string[] = [];
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;

  constructor(cluster: Cluster, clock: SteppedClock, id: string) {
    this.members = new AuditorMembers({
      cluster: this.#client(cluster),
      namespace: NAMESPACE,
      ...TIMES,
      id,
      log,
      clock,
    });
    this.members.onChange((change) => this.changes.push(change));
    this.#ended = this.members.start(this.#stop.signal);
  }

  get written(): readonly string[] {
    return this.isDead ? [] : NAMESPACES.filter((namespace) => this.members.mayWrite(namespace));
  }

  /** Ends it as SIGTERM does. */
  leave(): void {
    this.#stop.abort();
    this.isDead = true;
  }

  /** Ends it as SIGKILL does. */
  kill(): void {
    this.line = 'silent';
    this.leave();
  }

  get ended(): Promise<void> {
    return this.#ended;
  }

  #client(cluster: Cluster): Cluster {
    const answered = (call: () => unknown): unknown => {
      this.requests += 1;
      return this.line === 'refused'
        ? Promise.reject(new ClusterError('unreachable', 'cut'))
        : this.line === 'silent'
          ? new Promise(() => undefined)
          : call();
    };
    return new Proxy(cluster, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property);
        return typeof value === 'function'
          ? (...args: unknown[]) => answered(() => (value as (...all: unknown[]) => unknown).apply(target, args))
          : value;
      },
    });
  }
}

async function scene() {
  const embedded = await EmbeddedCluster.open();
  const clock = new SteppedClock();
  const all: TestMember[] = [];
  return {
    admin: embedded.admin,
    clock,
    all,
    join(id: string): TestMember {
      const member = new TestMember(embedded.admin, clock, id);
      all.push(member);
      return member;
    },
    /** Passes time, and checks at each step that no namespace has two writers. */
    async pass(ms: number): Promise<void> {
      for (let passed = 0; passed < ms; passed += 100) {
        await clock.pass(100);
        const written = all.flatMap((member) => member.written);
        assert.equal(new Set(written).size, written.length, `${String(written)} have two writers`);
      }
    },
    leases: async () => (await embedded.admin.list(LEASES, { namespace: NAMESPACE })).items,
    async [Symbol.asyncDispose]() {
      all.forEach((member) => member.leave());
      const ended = Promise.all(all.map((member) => member.ended));
      await clock.pass(20_000);
      await ended;
      await embedded.close();
    },
  };
}

describe('AuditorMembers', () => {
  it('writes about all namespaces at once when there is no other', async () => {
    await using test = await scene();
    const a = test.join('a');
    await test.pass(300);
    assert.deepEqual(a.written, NAMESPACES);
    assert.deepEqual(a.changes, ['gained', 'writing']);
    const [lease] = await test.leases();
    assert.equal(lease?.metadata.name, 'portcullis-auditor-a');
    assert.deepEqual(lease.metadata.labels, REPORT_LABELS);
    assert.equal(lease.spec?.leaseDurationSeconds, 15);
  });

  it('shares namespaces with one that comes, which waits until the others have noticed', async () => {
    await using test = await scene();
    const a = test.join('a');
    await test.pass(5_000);
    const b = test.join('b');
    await test.pass(3_000);
    assert.deepEqual(a.changes, ['gained', 'writing', 'lost']);
    assert.ok(a.written.length > 0 && a.written.length < NAMESPACES.length, String(a.written));
    assert.deepEqual(b.written, []);
    await test.pass(10_000);
    assert.deepEqual([...a.written, ...b.written].toSorted(), NAMESPACES.toSorted());
  });

  it('takes the namespaces of one that ended at once, and of one that was killed after its lease duration', async () => {
    await using test = await scene();
    const [a, b] = [test.join('a'), test.join('b')];
    await test.pass(CALM_MS);
    b.leave();
    await test.pass(3_000);
    assert.deepEqual(a.written, NAMESPACES);
    const c = test.join('c');
    await test.pass(CALM_MS);
    assert.ok(c.written.length > 0);
    c.kill();
    await test.pass(13_000);
    assert.notDeepEqual(a.written, NAMESPACES);
    await test.pass(5_000);
    assert.deepEqual(a.written, NAMESPACES);
    assert.deepEqual(a.changes.filter((change) => change === 'gained').length, 3);
  });

  it('keeps its namespaces while the API server is away, writes nothing, and goes on', async () => {
    await using test = await scene();
    const [a, b] = [test.join('a'), test.join('b')];
    await test.pass(CALM_MS);
    const [own, changes] = [a.written, a.changes.length];
    a.line = 'refused';
    b.line = 'silent';
    await test.pass(60_000);
    assert.deepEqual([a.written, b.written], [[], []]);
    assert.deepEqual(
      NAMESPACES.filter((namespace) => a.members.isOwn(namespace)),
      own,
    );
    a.line = 'open';
    b.line = 'open';
    await test.pass(CALM_MS);
    assert.deepEqual(a.written, own);
    assert.deepEqual(a.changes.slice(changes), ['writing', 'writing']);
  });

  it('joins again after its Lease was deleted, which others do not take for its end', async () => {
    await using test = await scene();
    const a = test.join('a');
    await test.pass(1_000);
    const b = test.join('b');
    for (let time = 0; time < 4; time += 1) {
      await test.pass(CALM_MS + 500);
      await test.admin.delete(LEASES, { namespace: NAMESPACE, name: 'portcullis-auditor-a' });
    }
    await test.pass(CALM_MS);
    assert.deepEqual([...a.written, ...b.written].toSorted(), NAMESPACES.toSorted());
    assert.ok(a.written.length > 0);
    assert.deepEqual(b.changes, ['gained', 'writing']);
  });

  it('releases its Lease when it ends, and deletes those of others that were killed long ago', async () => {
    await using test = await scene();
    const [a, b] = [test.join('a'), test.join('b')];
    await test.pass(5_000);
    b.kill();
    await test.pass(60_000);
    assert.equal((await test.leases()).length, 2);
    await test.pass(120_000);
    assert.deepEqual(
      (await test.leases()).map(({ metadata }) => metadata.name),
      ['portcullis-auditor-a'],
    );
    a.leave();
    await test.pass(1_000);
    assert.deepEqual(
      (await test.leases()).map(({ spec }) => spec?.holderIdentity),
      [''],
    );
    const c = test.join('c');
    await test.pass(300);
    assert.deepEqual(c.written, NAMESPACES);
    await test.pass(30_000);
    assert.deepEqual(
      (await test.leases()).map(({ metadata }) => metadata.name),
      ['portcullis-auditor-c'],
    );
  });

  it('makes one renewal and one list in each period, and no other request', async () => {
    await using test = await scene();
    const a = test.join('a');
    await test.pass(1_000);
    const before = a.requests;
    await test.pass(20_000);
    assert.ok(a.requests - before <= 20, String(a.requests - before));
  });

  it('shows others its annotations', async () => {
    await using test = await scene();
    const [a, b] = [test.join('a'), test.join('b')];
    a.members.annotations = () => ({ counts: '1' });
    await test.pass(5_000);
    assert.deepEqual(b.members.others, [{ id: 'a', annotations: { counts: '1' } }]);
    assert.deepEqual(b.members.members, ['a', 'b']);
    a.members.annotations = () => ({});
    await test.pass(5_000);
    assert.deepEqual(b.members.others, [{ id: 'a', annotations: {} }]);
  });

  // A failure is repeated by writing its seed here.
  const seed = 1 + Math.trunc(Math.random() * 2 ** 30);
  it(`has one writer for each namespace, whatever happens to auditors and their connections (seed ${seed})`, async () => {
    await using test = await scene();
    let state = seed;
    const below = (count: number): number => {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      return (state >>> 0) % count;
    };
    const living = (): readonly TestMember[] => test.all.filter(({ isDead }) => !isDead);
    const one = (): TestMember | undefined => living()[below(Math.max(1, living().length))];
    const setLine = (line: Line): void => {
      const member = one();
      if (member !== undefined) {
        member.line = line;
      }
    };
    const actions = [
      () => void (living().length < 4 && test.join(`m${test.all.length}`)),
      () => void (living().length < 4 && test.join(`m${test.all.length}`)),
      () => one()?.leave(),
      () => one()?.kill(),
      () => setLine('refused'),
      () => setLine('silent'),
      () => setLine('open'),
      () => setLine('open'),
    ];
    for (let round = 0; round < 6; round += 1) {
      for (let action = 0; action < 8; action += 1) {
        actions[below(actions.length)]?.();
        await test.pass(100 * (1 + below(150)));
      }
      living().forEach((member) => (member.line = 'open'));
      await test.pass(CALM_MS);
      const written = living().flatMap((member) => member.written);
      assert.deepEqual(written.toSorted(), living().length === 0 ? [] : NAMESPACES.toSorted());
    }
  });
});
