// The auditor of a cluster: knows at any time which existing objects its policies would reject.
import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiResource, Backoff, isForbidden, isNotFound } from '../../cluster/index.ts';
import type { EvaluationHost, HostedPolicy, LoadOutcome } from '../../evaluation/index.ts';
import {
  ADMISSION_POLICIES,
  ADMISSION_POLICY_GROUPS,
  type AdmissionPolicyObject,
  apiVersionOf,
  CLUSTER_ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  kubernetesKind,
  type OwnKind,
  policyId,
} from '../../resources/index.ts';
import { aborted, type Change, type ControlledCluster, type ObjectCache, type Runnable } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import type { AuditedInstallation } from '../audit-policy.ts';
import { type Coverage, NO_COUNTS } from '../coverage.ts';
import type { AuditFinding, AuditFindings, FindingsListener } from '../finding.ts';
import { type AuditShare, type ShareChange, WHOLE_CLUSTER } from '../members/audit-share.ts';
import type { AuditorExceptions } from './auditor-exceptions.ts';
import { AuditorMetrics } from './auditor-metrics.ts';
import { keyOfKind, type PlannedPolicy, planAuditor } from './auditor-plan.ts';
import { ExpiringVerdicts } from './expiring-verdicts.ts';
import { FindingStore } from './finding-store.ts';
import { followKind } from './follow-kind.ts';
import { KindAudit } from './kind-audit.ts';
import { type ChangedObject, type LookedUpObjects, lookedUpFor, namespaceFor } from './looked-up-objects.ts';
import { notLoadedText } from './not-loaded-text.ts';
import { ObjectJudge } from './object-judge.ts';
import { unreadKind } from '../policies-of-cluster.ts';
import { type PolicyOrigin, policyVersion, type PolicyVersion } from './policy-version.ts';

/** Changes of policies that come within this time are one. Milliseconds. */
const BURST_MS = 100;
/** How often kinds are discovered, and modules that could not be loaded are tried again. Milliseconds. */
const REPLAN_MS = 60_000;
/** How long objects wait for what policies look up. Then policies say themselves what is missing. Milliseconds. */
const LOOKUP_PATIENCE_MS = 5_000;
/** How often conditions without an event of their own are looked at. Milliseconds. */
const POLL_MS = 50;
/** Coverage is told after changes, not more often than this. Milliseconds. */
const COVERAGE_MS = 1_000;
/** After this time errors of policies are tried again. Milliseconds. */
const ERROR_RETRY_MS = 5 * 60_000;

const POLICY_KINDS: readonly OwnKind[] = [
  CLUSTER_ADMISSION_POLICIES,
  ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  ADMISSION_POLICY_GROUPS,
];

export interface AuditorOptions {
  readonly controlled: Pick<ControlledCluster, 'cluster' | 'caches' | 'registry' | 'log'>;
  /** Publishes what it looks up to `lookups`. */
  readonly host: Pick<EvaluationHost, 'serve' | 'evaluate'>;
  readonly lookups: LookedUpObjects;
  /** Gives the host its exceptions. Default: there are none. */
  readonly exceptions?: AuditorExceptions;
  /** The part of the cluster that it judges. Default: all. */
  readonly share?: AuditShare;
  readonly installation: AuditedInstallation;
  /** Whether Secrets are read. */
  readonly includesSecrets?: boolean;
  /** Evaluations at once: the threads of the host. */
  readonly atOnce: number;
}

/** A policy of the cluster. */
interface AuditedPolicy {
  readonly planned: PlannedPolicy;
  /** Undefined: it is not audited, or not loaded. */
  readonly version?: PolicyVersion;
  readonly notLoaded?: string;
}

/** Watches policies, objects and what policies look up, and judges what changed. Its findings are there while it leads. */
export class Auditor implements AuditFindings, Runnable {
  readonly name = 'auditor';
  readonly #options: AuditorOptions;
  readonly #share: AuditShare;
  readonly #findings = new FindingStore();
  readonly #judge: ObjectJudge;
  readonly #metrics: AuditorMetrics;
  readonly #kinds = new Map<string, KindAudit>();
  readonly #coverageListeners = new Set<(policyId: string) => void>();
  /** What listeners know of a policy. */
  readonly #told = new Map<string, { readonly text: string; readonly states: string | undefined }>();
  /** By id. */
  #policies: ReadonlyMap<string, AuditedPolicy> = new Map();
  #byUid: ReadonlyMap<string, AuditedPolicy> = new Map();
  #isPlanned = false;
  /** Resolves when the host serves what it was given last. */
  #serving: Promise<unknown> = Promise.resolve();
  #replan = Promise.withResolvers<void>();
  #mayServeOthers = false;
  /** How often the share changed. */
  #shares = 0;

  constructor(options: AuditorOptions) {
    this.#options = options;
    this.#share = options.share ?? WHOLE_CLUSTER;
    this.#judge = new ObjectJudge(options.host, options.atOnce);
    this.#metrics = new AuditorMetrics(options.controlled.registry, {
      evaluations: () => this.#judge.evaluations,
      findings: () => this.#policies.keys().flatMap((id) => this.#findings.ofPolicy(id)),
      kinds: () => this.#kinds.values(),
      coverage: () => [...this.unreadKinds(), ...this.#policies.keys().flatMap((id) => this.coverage(id) ?? [])],
      versions: () => this.#versions(),
    });
  }

  of(namespace: string): readonly AuditFinding[] {
    return this.#findings.of(namespace);
  }

  namespaces(): Iterable<string> {
    return this.#findings.namespaces();
  }

  /** Findings of a policy, in all namespaces. */
  ofPolicy(policyId: string): Iterable<AuditFinding> {
    return this.#findings.ofPolicy(policyId);
  }

  isSettled(policyUid: string, { group, kind }: { readonly group: string; readonly kind: string }): boolean {
    const policy = this.#byUid.get(policyUid);
    if (policy === undefined) {
      return this.knowsPolicy(policyUid) === false;
    }
    const own = [...(policy.planned.audited?.kinds ?? [])].filter(
      ([, type]) => type.group === group && type.kind === kind,
    );
    return own.length === 0
      ? policy.planned.coverage.every(({ reason }) => reason !== 'NotDiscovered')
      : own.every(([key]) => this.#kinds.get(key)?.isSettled(policy.planned.id) === true);
  }

  knowsPolicy(policyUid: string): boolean | undefined {
    const policy = this.#byUid.get(policyUid);
    if (policy !== undefined) {
      return policy.planned.audited !== undefined;
    }
    return this.#isPlanned && this.#caches.every((cache) => cache.isSynced || isMissing(cache)) ? false : undefined;
  }

  onChange(listener: FindingsListener): () => void {
    return this.#findings.onChange(listener);
  }

  /** Kinds of policies that cannot be read, so that it is not known which there are. */
  unreadKinds(): readonly Coverage[] {
    return POLICY_KINDS.flatMap((kind) => {
      const { lastError, synced } = this.#options.controlled.caches.cache(kind).report;
      const isUnread = isForbidden(lastError) || (!synced && lastError !== undefined && !isNotFound(lastError));
      return isUnread ? unreadKind(lastError, kind, ['get', 'list', 'watch']) : [];
    });
  }

  /** What is known by a policy, by kind; undefined: the policy is not known, or cannot be read any more. */
  coverage(policyId: string): readonly Coverage[] | undefined {
    const policy = this.#policies.get(policyId);
    if (policy === undefined || this.unreadKinds().some(({ kind }) => kind?.kind === policy.planned.kind)) {
      return undefined;
    }
    const { planned, version, notLoaded } = policy;
    const ofKinds = [...(planned.audited?.kinds ?? [])].flatMap(([key, kind]): readonly Coverage[] => {
      if (version === undefined) {
        const { name } = planned;
        return [
          { policy: name, kind, state: 'Failed', reason: 'NotLoaded', message: notLoaded ?? '', counts: NO_COUNTS },
        ];
      }
      const audit = this.#kinds.get(key);
      return audit === undefined ? [] : [audit.coverage(version)];
    });
    return [...planned.coverage, ...ofKinds];
  }

  /** Called with policies whose coverage or counts changed. Returns how to end that. */
  onCoverage(listener: (policyId: string) => void): () => void {
    this.#coverageListeners.add(listener);
    return () => this.#coverageListeners.delete(listener);
  }

  /** The generation of the policy's object that its coverage is about. */
  generationOf(policyId: string): number | undefined {
    return this.originOf(policyId)?.generation;
  }

  /** The policy object that its coverage is about. */
  originOf(policyId: string): PolicyOrigin | undefined {
    return this.#policies.get(policyId)?.planned.origin;
  }

  /** Those that it knows. */
  policyIds(): Iterable<string> {
    return this.#policies.keys();
  }

  async start(signal: AbortSignal): Promise<void> {
    const { lookups, controlled } = this.#options;
    using stack = new DisposableStack();
    const expiring = stack.use(
      new ExpiringVerdicts({
        cluster: controlled.cluster,
        judgeAgain: (policy) => this.#kinds.values().forEach((kind) => kind.judgeAgain(policy)),
        log: controlled.log,
      }),
    );
    stack.defer(lookups.onChange((objects) => objects.forEach((object) => this.#lookAgain(object))));
    const { exceptions } = this.#options;
    stack.defer(exceptions?.onChange((namespace) => this.#exceptionsChanged(namespace)) ?? (() => undefined));
    stack.defer(this.#share.onChange((change) => this.#shareChanged(change)));
    this.#caches.forEach((cache) => stack.defer(cache.subscribe((change) => this.#policyChanged(change))));
    const tell = setInterval(() => this.#tellCoverage(), COVERAGE_MS).unref();
    stack.defer(() => clearInterval(tell));
    const retry = setInterval(() => this.#retryErrors(), ERROR_RETRY_MS).unref();
    stack.defer(() => clearInterval(retry));
    const watching = this.#watchKinds(signal);
    await this.#keepPlanning(expiring, signal);
    await watching;
    this.#end();
  }

  /** Without leadership nothing is known. */
  #end(): void {
    this.#isPlanned = false;
    this.#setPolicies([]);
    this.#kinds.values().forEach((kind) => kind.stop());
    this.#kinds.clear();
  }

  #setPolicies(policies: Iterable<AuditedPolicy>): void {
    const all = [...policies];
    this.#policies = new Map(all.map((policy) => [policy.planned.id, policy]));
    this.#byUid = new Map(all.map((policy) => [policy.planned.origin.uid, policy]));
  }

  get #caches(): readonly ObjectCache[] {
    return POLICY_KINDS.map((kind) => this.#options.controlled.caches.cache(kind));
  }

  /** Statuses cause nothing. A policy that is gone has no findings from now on. */
  #policyChanged({ before, after }: Change): void {
    const gone = before !== undefined && before.metadata.uid !== after?.metadata.uid ? policyId(before) : undefined;
    if (gone !== undefined && this.#policies.has(gone)) {
      this.#setPolicies(this.#policies.values().filter(({ planned }) => planned.id !== gone));
      this.#options.exceptions?.want(new Map([[gone, undefined]]), false);
      this.#distribute();
    }
    const versionOf = (policy: typeof after): string =>
      JSON.stringify([policy?.metadata.uid, policy?.metadata.generation, policy?.metadata.annotations]);
    if (versionOf(before) !== versionOf(after)) {
      this.#replan.resolve();
    }
  }

  /** Policies of namespaces that came are not known before the next plan. */
  #shareChanged(change: ShareChange): void {
    if (change !== 'writing') {
      this.#shares += 1;
      this.#isPlanned = false;
      this.#kinds.values().forEach((kind) => kind.reshare(change === 'gained'));
      this.#replan.resolve();
    }
  }

  /** Notices new kinds at once, where it may; else {@link REPLAN_MS} later. */
  async #watchKinds(signal: AbortSignal): Promise<void> {
    const type = kubernetesKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    const changed = (): void => {
      this.#mayServeOthers = true;
      this.#replan.resolve();
    };
    if (type !== undefined) {
      await followKind(this.#options.controlled.cluster, type, changed, signal);
    }
  }

  async #keepPlanning(expiring: ExpiringVerdicts, signal: AbortSignal): Promise<void> {
    const { log } = this.#options.controlled;
    const backoff = new Backoff();
    const stopped = aborted(signal);
    await this.#until(
      () => this.#caches.every((cache) => cache.isSynced || cache.report.lastError !== undefined),
      signal,
    );
    while (!signal.aborted) {
      this.#replan = Promise.withResolvers();
      let waitMs = REPLAN_MS;
      try {
        await Promise.race([this.#plan(expiring, signal), stopped]);
        backoff.reset();
      } catch (error) {
        waitMs = backoff.failed(performance.now());
        log.warn({ error: errorText(error), waitMs }, 'the audit cannot be planned, trying again');
      }
      const waiting = new AbortController();
      await Promise.race([
        stopped,
        this.#replan.promise.then(() => sleep(BURST_MS)),
        sleep(waitMs, undefined, { signal: waiting.signal, ref: false }).catch(() => undefined),
      ]);
      waiting.abort();
    }
  }

  async #plan(expiring: ExpiringVerdicts, signal: AbortSignal): Promise<void> {
    const { lookups, installation, includesSecrets = false, controlled } = this.#options;
    const { discovery } = controlled.cluster;
    const options = { signal, maxAgeMs: this.#mayServeOthers ? 0 : REPLAN_MS / 2 };
    this.#mayServeOthers = false;
    const shares = this.#shares;
    const resources = await discovery.resources(options);
    const unavailable = (await discovery.unavailable?.(options)) ?? [];
    const served = [...resources, ...this.#unansweredKinds(unavailable, resources)];
    const planned = planAuditor(this.#policyObjects(), served, { includesSecrets, unavailable }, installation);
    const outcomes = await this.#serve(planned.flatMap(({ audited }) => audited?.hosted ?? []));
    signal.throwIfAborted();
    const exists = new Set(this.#policyObjects().map(({ metadata }) => metadata.uid));
    const existing = planned.filter(({ origin }) => exists.has(origin.uid));
    this.#setPolicies(existing.map((policy) => this.#loaded(policy, outcomes.get(policy.id))));
    this.#options.exceptions?.want(new Map(existing.map(({ id, origin }) => [id, origin.uid])), true);
    const versions = [...this.#versions()];
    await this.#until(
      () => lookups.hasAll(versions),
      AbortSignal.any([signal, AbortSignal.timeout(LOOKUP_PATIENCE_MS)]),
    );
    signal.throwIfAborted();
    this.#isPlanned = shares === this.#shares;
    this.#distribute();
    expiring.follow(versions);
    this.#findings.changed(undefined);
  }

  /** One call after the other, also where an earlier leadership ended during one. */
  #serve(policies: readonly HostedPolicy[]): Promise<ReadonlyMap<string, LoadOutcome>> {
    const serving = this.#serving.then(() => this.#options.host.serve(policies));
    this.#serving = serving.catch(() => undefined);
    return serving;
  }

  /** Kinds that are audited, of APIs that do not answer now: their findings stay. */
  #unansweredKinds(unavailable: readonly string[], served: readonly ApiResource[]): readonly ApiResource[] {
    const known = new Set(served.map(keyOfKind));
    return [...this.#kinds.values()]
      .map(({ type }) => type)
      .filter((type) => unavailable.includes(apiVersionOf(type)) && !known.has(keyOfKind(type)));
  }

  /** Without those of namespaces of other auditors. */
  #policyObjects(): readonly AdmissionPolicyObject[] {
    const all = this.#caches.flatMap((cache) => cache.list()) as readonly unknown[] as readonly AdmissionPolicyObject[];
    return all.filter(({ metadata: { namespace } }) => namespace === undefined || this.#share.isOwn(namespace));
  }

  #loaded(planned: PlannedPolicy, outcome: LoadOutcome | undefined): AuditedPolicy {
    const { audited, origin, id } = planned;
    if (audited === undefined || outcome === undefined) {
      return { planned };
    }
    if (!outcome.ok) {
      return { planned, notLoaded: notLoadedText(outcome) };
    }
    const before = this.#policies.get(id)?.version;
    return { planned, version: policyVersion(audited.policy, origin, audited.hosted, outcome.digests, before) };
  }

  *#versions(): Generator<PolicyVersion> {
    for (const { version } of this.#policies.values()) {
      if (version !== undefined) {
        yield version;
      }
    }
  }

  /** Gives each kind its policies. */
  #distribute(): void {
    const kinds = new Map<string, { readonly type: ApiResource; readonly policies: Map<string, PolicyVersion> }>();
    for (const { planned, version } of this.#policies.values()) {
      for (const [key, type] of version === undefined ? [] : (planned.audited?.kinds ?? [])) {
        const kind = kinds.get(key) ?? { type, policies: new Map<string, PolicyVersion>() };
        kinds.set(key, kind);
        if (version !== undefined) {
          kind.policies.set(version.id, version);
        }
      }
    }
    for (const [key, kind] of this.#kinds) {
      if (!kinds.has(key)) {
        this.#kinds.delete(key);
        kind.stop();
      }
    }
    for (const [key, { type, policies }] of kinds) {
      const known = this.#kinds.get(key);
      const kind = known ?? this.#kindAudit(type);
      this.#kinds.set(key, kind);
      kind.judgeBy(policies);
      if (known === undefined) {
        kind.start();
      }
    }
  }

  #kindAudit(type: ApiResource): KindAudit {
    const { lookups, exceptions, controlled } = this.#options;
    const { cluster, log } = controlled;
    const onListFailure = (failed: ApiResource): void => this.#metrics.failed(failed);
    return new KindAudit(type, {
      cluster,
      share: this.#share,
      judge: this.#judge,
      lookups,
      exceptions,
      findings: this.#findings,
      onListFailure,
      log,
    });
  }

  #exceptionsChanged(namespace: string): void {
    const versions = [...this.#versions()];
    this.#kinds.values().forEach((kind) => kind.lookAgain(versions, namespace));
  }

  #lookAgain(object: ChangedObject): void {
    const affected = Map.groupBy(this.#versions(), (policy) => lookedUpFor(policy, object));
    for (const kind of this.#kinds.values()) {
      kind.lookAgain(affected.get('namespace') ?? [], namespaceFor(object));
      kind.lookAgain(affected.get('all') ?? []);
    }
  }

  /** Also findings for which there was no room. */
  #retryErrors(): void {
    const versions = [...this.#versions()];
    for (const kind of this.#kinds.values()) {
      const isMissing = (id: string): boolean => kind.unlisted(id) > 0 && this.#findings.hasRoom(id);
      kind.lookAgain(versions.filter(({ id }) => kind.counts(id).unjudged > 0 || isMissing(id)));
    }
  }

  #tellCoverage(): void {
    let isSettledChanged = false;
    for (const id of new Set([...this.#policies.keys(), ...this.#told.keys()])) {
      const coverage = this.coverage(id);
      const text = JSON.stringify([this.generationOf(id), coverage]);
      const states = JSON.stringify(coverage?.map(({ kind, state }) => [kind, state]));
      const told = this.#told.get(id);
      if (text !== told?.text) {
        isSettledChanged ||= states !== told?.states;
        this.#told.set(id, { text, states });
        this.#coverageListeners.forEach((listener) => listener(id));
      }
      if (!this.#policies.has(id)) {
        this.#told.delete(id);
      }
    }
    if (isSettledChanged) {
      this.#findings.changed(undefined);
    }
  }

  async #until(condition: () => boolean, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !condition()) {
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** Whether the cluster has no such kind of policies. */
function isMissing(cache: ObjectCache): boolean {
  return isNotFound(cache.report.lastError);
}
