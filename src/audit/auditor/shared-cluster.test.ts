// Auditors that share a cluster write together what one alone would find, while they come, die and lose the API server.
import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { type Cluster, ClusterError } from '../../cluster/index.ts';
import { EvaluationHost } from '../../evaluation/index.ts';
import {
  ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICIES,
  customResourceDefinition,
  knownKind,
  type KubernetesObject,
  OWN_KINDS,
  REPORT_FORMATS,
  reportDefinitions,
  type ResourceType,
} from '../../resources/index.ts';
import { auditCluster } from '../audit-cluster.ts';
import { AuditorMembers } from '../members/auditor-members.ts';
import { policiesOfCluster } from '../policies-of-cluster.ts';
import { SummedAudit } from '../policy-status/summed-audit.ts';
import { ReportWriter } from '../reports/report-writer.ts';
import { RandomChanges, toggleObject } from '../testing/random-changes.ts';
import { eventually, RunningAuditor } from '../testing/running-auditor.ts';
import { celSpec, INSTALLATION, NOT_LATEST, policyObject, ruleFor, samplePod } from '../testing/sample-policies.ts';
import { SteppedClock } from '../testing/stepped-clock.ts';

const PODS = knownKind('v1', 'Pod');
const NAMESPACES = knownKind('v1', 'Namespace');
const { reports: REPORTS, clusterReports: CLUSTER_REPORTS } = REPORT_FORMATS.openreports;
const CRDS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
const PLACES = Array.from({ length: 8 }, (_, index) => `team-${index}`);
const NAMES = ['a', 'b'];
const TIMES = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };
/** Changes between two events. */
const CHANGES = 3;
const log = pino({ level: 'silent' });

/** An auditor with its reports, which a test can disconnect. */
class SharingAuditor implements AsyncDisposable {
  readonly members: AuditorMembers;
  readonly audit: SummedAudit;
  readonly running: RunningAuditor;
  isConnected = true;
  readonly #stop = new AbortController();
  readonly #ended: Promise<unknown>;

  constructor(cluster: Cluster, clock: SteppedClock, id: string, onWrite: (namespace: string) => void) {
    const client = this.#client(cluster, onWrite);
    this.members = new AuditorMembers({ cluster: client, namespace: 'default', ...TIMES, id, log, clock });
    this.running = new RunningAuditor(client, this.members);
    const { auditor } = this.running;
    this.audit = new SummedAudit(auditor, this.members);
    this.members.annotations = () => this.audit.annotations();
    const reports = new ReportWriter({
      cluster: client,
      findings: [auditor],
      share: this.members,
      registry: new Registry(),
      log,
      clock,
    });
    this.#ended = Promise.all([this.members, reports].map((one) => one.start(this.#stop.signal)));
  }

  #client(cluster: Cluster, onWrite: (namespace: string) => void): Cluster {
    const call = (property: string | symbol, value: unknown, args: readonly unknown[]): unknown => {
      if (!this.isConnected && property !== 'discovery') {
        throw new ClusterError('unreachable', 'cut');
      }
      const [type, about] = args as [ResourceType, KubernetesObject & { namespace?: string }];
      if (['create', 'update', 'delete'].includes(String(property)) && type.group === REPORTS.group) {
        onWrite(about.namespace ?? about.metadata?.namespace ?? '');
      }
      return (value as (...all: readonly unknown[]) => unknown).apply(cluster, args as []);
    };
    return new Proxy(cluster, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property);
        if (typeof value !== 'function') {
          return value;
        }
        return property === 'watch'
          ? (...args: unknown[]) => call(property, value, args)
          : async (...args: unknown[]) => await call(property, value, args);
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.running[Symbol.asyncDispose]();
    await this.#ended;
  }
}

describe('auditors that share a cluster', () => {
  // A failure is repeated by writing its seed here.
  const seed = 1 + Math.trunc(Math.random() * 2 ** 30);
  const random = new RandomChanges(seed);
  const clock = new SteppedClock();
  let embedded: EmbeddedCluster;
  let admin: Cluster;
  let host: EvaluationHost;

  before(async () => {
    embedded = await EmbeddedCluster.open();
    ({ admin } = embedded);
    for (const definition of [...OWN_KINDS.map(customResourceDefinition), ...reportDefinitions()]) {
      await admin.create(CRDS, definition);
    }
    for (const name of PLACES) {
      await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    for (const place of PLACES) {
      await admin.create(PODS, samplePod(place, 'base', 'web:latest'));
    }
    await admin.create(CLUSTER_ADMISSION_POLICIES, policyObject('base', celSpec(NOT_LATEST)));
    host = new EvaluationHost({
      cacheDir: join(tmpdir(), 'portcullis-auditor'),
      workers: 1,
      lookups: { cluster: admin, log },
      log: () => undefined,
    });
    await host.start();
  });
  after(async () => {
    await host[Symbol.asyncDispose]();
    await embedded[Symbol.asyncDispose]();
  });

  const one = <T>(list: readonly T[]): T => random.one(list);
  const toggle = (type: ResourceType, object: KubernetesObject): Promise<void> => toggleObject(admin, type, object);

  const spec = (): object =>
    one([
      celSpec(NOT_LATEST),
      celSpec("object.metadata.name != 'a'"),
      celSpec(NOT_LATEST, { namespaceSelector: { matchLabels: { tier: 'prod' } } }),
      celSpec("object.metadata.name in ['team-1', 'default']", { rules: [ruleFor('namespaces')] }),
    ]);
  const CHANGE: readonly (() => Promise<unknown>)[] = [
    () => toggle(PODS, samplePod(one(PLACES), one(NAMES), 'web:latest')),
    () => toggle(PODS, samplePod(one(PLACES), one(NAMES), one(['web:1', 'web:latest']))),
    () => toggle(CLUSTER_ADMISSION_POLICIES, policyObject(one(NAMES), spec())),
    () => toggle(ADMISSION_POLICIES, policyObject('own', celSpec("object.metadata.name != 'b'"), one(PLACES))),
    () => {
      const body = { metadata: { labels: { tier: one(['prod', null]) } } };
      return admin.patch(NAMESPACES, { name: one(PLACES) }, { type: 'merge', body });
    },
  ];

  async function fromNothing(): Promise<{ readonly found: readonly string[]; readonly failed: number }> {
    const { policies } = await policiesOfCluster(admin, INSTALLATION);
    const found: string[] = [];
    for await (const { results } of auditCluster({ cluster: admin, host, policies })) {
      found.push(...results.map(({ policy, object }) => `${policy} ${object.namespace ?? ''}/${object.name}`));
    }
    return { found: found.toSorted(), failed: found.filter((text) => text.startsWith('cap/')).length };
  }

  async function reported(): Promise<readonly string[]> {
    const reports = [...(await admin.list(REPORTS)).items, ...(await admin.list(CLUSTER_REPORTS)).items];
    return reports
      .flatMap(({ results = [] }) => results)
      .map(({ policy, resources }) => `${policy} ${resources?.[0]?.namespace ?? ''}/${resources?.[0]?.name ?? ''}`)
      .toSorted();
  }

  it(
    `write what one alone would find, each namespace by one at a time (seed ${seed})`,
    { timeout: 300_000 },
    async () => {
      const living: SharingAuditor[] = [];
      await using ending = new AsyncDisposableStack();
      ending.defer(async () => {
        await Promise.all(living.map((auditor) => auditor[Symbol.asyncDispose]()));
      });
      const join = (): void => {
        const id = `m${random.below(1_000_000)}`;
        const auditor: SharingAuditor = new SharingAuditor(admin, clock, id, (namespace) => {
          const writers = living.filter(({ members }) => members.mayWrite(namespace));
          assert.deepEqual(writers, [auditor], `one writes about ${namespace}`);
        });
        living.push(auditor);
      };
      const end = async (isKilled: boolean): Promise<void> => {
        const [gone] = living.splice(random.below(living.length), 1);
        if (gone !== undefined) {
          // Its Lease stays then.
          gone.isConnected = !isKilled;
          await gone[Symbol.asyncDispose]();
        }
      };
      const disconnect = (): void => {
        one(living).isConnected = false;
      };
      const EVENTS: readonly (() => void | Promise<void>)[] = [
        () => end(true),
        join,
        disconnect,
        () => end(false),
        join,
        () => end(true),
      ];
      join();
      join();
      for (const event of EVENTS) {
        await change();
        await event();
        await change();
        await clock.pass(random.below(20_000));
        living.forEach((auditor) => (auditor.isConnected = true));
        await change();
        await eventually(async () => {
          await clock.pass(2_000);
          const { found, failed } = await fromNothing();
          assert.deepEqual(await reported(), found);
          assert.deepEqual(summed(living), { states: ['Scanned'], failed });
          return 'equal';
        }, 'equal');
      }
    },
  );

  async function change(): Promise<void> {
    for (let count = 1; count <= CHANGES; count += 1) {
      await one(CHANGE)();
      await clock.pass(random.below(3_000));
    }
  }

  /** What the one that writes statuses of policies of the cluster knows. */
  function summed(living: readonly SharingAuditor[]): { readonly states: readonly string[]; readonly failed: number } {
    const writers = living.filter(({ members }) => members.mayWrite(''));
    assert.equal(writers.length, 1);
    const coverage = writers.flatMap(({ audit, running }) =>
      [...running.auditor.policyIds()]
        .filter((id) => id.startsWith('kw.cap.'))
        .flatMap((id) => audit.coverage(id) ?? []),
    );
    const failed = coverage.reduce((sum, { counts }) => sum + counts.failed, 0);
    return { states: [...new Set(coverage.map(({ state: one }) => one))], failed };
  }
});
