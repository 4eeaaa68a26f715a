// Findings that controllers have written into statuses: of governance policies, and of NetworkPolicies.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, Reflector, type WatchEvent } from '../../cluster/index.ts';
import type { Logger } from '../../log/index.ts';
import {
  apiVersionOf,
  CERTIFICATE_POLICIES,
  CONFIGURATION_POLICIES,
  groupResourceOf,
  type KubernetesObject,
  NETWORK_POLICY_STATUSES,
  type OwnKind,
} from '../../resources/index.ts';
import type { Runnable } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import type { AuditFinding, AuditFindings, FindingsListener } from '../finding.ts';
import { certificateFindings, configurationFindings } from './governance-findings.ts';
import { networkPolicyFindings } from './network-policy-findings.ts';

/** How often the cluster is asked whether it serves a kind that it did not serve. Milliseconds. */
const DISCOVERY_MS = 60_000;
/** Names of policies in findings from statuses. */
const STATUS_POLICY =
  /^(?:(?:policy|configurationpolicy|certificatepolicy)(?:\/[^/]+){2}|netpol\/(?:support|limits|advice))$/;

export interface StatusFindingsOptions {
  readonly cluster: Pick<Cluster, 'list' | 'watch' | 'discovery'>;
  readonly log: Logger;
  /** See {@link DISCOVERY_MS}, the default. */
  readonly discoveryMs?: number;
}

/** Whether findings of this policy come from statuses. Governance policies need not exist. */
export function isStatusPolicy(policy: string): boolean {
  return STATUS_POLICY.test(policy);
}

/** Follows the statuses of all kinds that the cluster serves. */
export class StatusFindings implements AuditFindings, Runnable {
  readonly name = 'status-findings';
  readonly #options: StatusFindingsOptions;
  readonly #kinds: readonly KindFindings[];
  readonly #listeners = new Set<FindingsListener>();

  constructor(options: StatusFindingsOptions) {
    this.#options = options;
    const changed = (namespaces: Changed): void => this.#changed(namespaces);
    this.#kinds = [
      new KindFindings(CONFIGURATION_POLICIES, configurationFindings, changed),
      new KindFindings(CERTIFICATE_POLICIES, certificateFindings, changed),
      new KindFindings(NETWORK_POLICY_STATUSES, networkPolicyFindings, changed),
    ];
  }

  /** Follows each kind from when it is served. Never rejects. */
  async start(signal: AbortSignal): Promise<void> {
    const { discoveryMs = DISCOVERY_MS } = this.#options;
    const running: Promise<void>[] = [];
    const waiting = new Set(this.#kinds);
    while (waiting.size > 0 && !signal.aborted) {
      for (const kind of waiting) {
        if (await this.#isServed(kind, signal)) {
          waiting.delete(kind);
          running.push(this.#follow(kind, signal));
        }
      }
      await sleep(discoveryMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
    await Promise.all(running);
  }

  of(namespace: string): readonly AuditFinding[] {
    return this.#kinds.flatMap((kind) => kind.of(namespace));
  }

  namespaces(): Iterable<string> {
    return new Set(this.#kinds.flatMap((kind) => [...kind.namespaces()]));
  }

  isSettled(policyUid: string): boolean {
    return this.#kinds.some((kind) => kind.isEvaluated(policyUid));
  }

  knowsPolicy(policyUid: string): boolean | undefined {
    const answers = this.#kinds.map((kind) => kind.knows(policyUid));
    return answers.includes(true) ? true : answers.includes(undefined) ? undefined : false;
  }

  onChange(listener: FindingsListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What is not known stays unknown: then stored results stay, too. */
  async #isServed(kind: KindFindings, signal: AbortSignal): Promise<boolean> {
    const { cluster, log } = this.#options;
    try {
      const served = await cluster.discovery.find(apiVersionOf(kind.type), kind.type.kind, { signal });
      kind.isServed = served !== undefined;
      return served !== undefined;
    } catch (error) {
      log.warn({ kind: kind.name, error: errorText(error) }, 'the cluster does not say whether it serves a kind');
      return false;
    }
  }

  #follow(kind: KindFindings, signal: AbortSignal): Promise<void> {
    const { cluster, log } = this.#options;
    let last: string | undefined;
    const reflector = new Reflector({
      cluster,
      type: kind.type,
      handler: kind,
      onError: (error, during) => {
        const text = errorText(error);
        if (text !== last) {
          log.warn({ kind: kind.name, during, error: text }, 'statuses cannot be followed, trying again');
        }
        last = text;
      },
    });
    return reflector.start(signal);
  }

  #changed(namespaces: Changed): void {
    for (const namespace of namespaces) {
      this.#listeners.forEach((listener) => listener(namespace));
    }
  }
}

/** Namespaces whose findings may differ; undefined stands for all. */
type Changed = ReadonlySet<string | undefined>;

/** Findings of one object, in the namespaces of what they are about. Undefined: there is no verdict yet. */
type OfObject = ReadonlyMap<string, readonly AuditFinding[]> | undefined;

/** The findings that the objects of a kind have in their statuses. Objects are not kept. */
class KindFindings {
  readonly type: OwnKind;
  readonly name: string;
  /** Undefined: not known yet. */
  isServed: boolean | undefined;
  readonly #read: (object: KubernetesObject) => readonly AuditFinding[] | undefined;
  readonly #changed: (namespaces: Changed) => void;
  #byUid = new Map<string, OfObject>();
  /** Uids with findings in a namespace. */
  #byNamespace = new Map<string, Set<string>>();
  #isListed = false;

  constructor(
    type: OwnKind,
    read: (object: never) => readonly AuditFinding[] | undefined,
    changed: (namespaces: Changed) => void,
  ) {
    this.type = type;
    this.name = groupResourceOf(type);
    this.#read = read as (object: KubernetesObject) => readonly AuditFinding[] | undefined;
    this.#changed = changed;
  }

  of(namespace: string): readonly AuditFinding[] {
    return [...(this.#byNamespace.get(namespace) ?? [])].flatMap((uid) => this.#byUid.get(uid)?.get(namespace) ?? []);
  }

  namespaces(): Iterable<string> {
    return this.#byNamespace.keys();
  }

  isEvaluated(uid: string): boolean {
    return this.#byUid.get(uid) !== undefined;
  }

  knows(uid: string): boolean | undefined {
    return this.#byUid.has(uid) ? true : this.isServed === false || this.#isListed ? false : undefined;
  }

  /** All objects, see Reflector. */
  replace(items: readonly KubernetesObject[]): void {
    const uids = new Set(items.map(({ metadata }) => metadata.uid ?? ''));
    const gone = [...this.#byUid.keys()].filter((uid) => !uids.has(uid));
    const isFirst = !this.#isListed;
    this.#isListed = true;
    const changed = [...gone.flatMap((uid) => this.#set(uid)), ...items.flatMap((item) => this.#add(item))];
    this.#changed(new Set(isFirst ? [undefined] : changed));
  }

  /** One change, see Reflector. */
  apply({ type, object }: WatchEvent): void {
    this.#changed(new Set(type === 'DELETED' ? this.#set(object.metadata.uid ?? '') : this.#add(object)));
  }

  #add({ metadata, ...fields }: KubernetesObject): readonly (string | undefined)[] {
    const findings = this.#read({ ...fields, kind: this.type.kind, metadata });
    const byNamespace =
      findings === undefined ? undefined : Map.groupBy(findings, ({ object }) => object.namespace ?? '');
    return this.#set(metadata.uid ?? '', { findings: byNamespace });
  }

  /** @returns the namespaces whose findings may differ now, see {@link Changed} */
  #set(uid: string, next?: { readonly findings: OfObject }): readonly (string | undefined)[] {
    const isFirst = this.#byUid.get(uid) === undefined;
    const before = [...(this.#byUid.get(uid)?.keys() ?? [])];
    for (const namespace of before) {
      const uids = this.#byNamespace.get(namespace);
      uids?.delete(uid);
      if (uids?.size === 0) {
        this.#byNamespace.delete(namespace);
      }
    }
    if (next === undefined) {
      this.#byUid.delete(uid);
      return [undefined];
    }
    this.#byUid.set(uid, next.findings);
    const after = [...(next.findings?.keys() ?? [])];
    for (const namespace of after) {
      this.#byNamespace.set(namespace, (this.#byNamespace.get(namespace) ?? new Set()).add(uid));
    }
    return isFirst && next.findings !== undefined ? [undefined] : [...before, ...after];
  }
}
