// The two versions of a policy, as an evaluation host serves them beside each other.
import type { ApiResource } from '../../cluster/index.ts';
import type { ObjectVerdict } from '../../engine/index.ts';
import type { EvaluationHost, HostedPolicy, LoadOutcome } from '../../evaluation/index.ts';
import { type ExceptionTerms, hasOrAll, type PolicyMatch } from '../../resources/index.ts';
import type { AuditPolicy } from '../audit-policy.ts';
import { kindsOfRules } from '../kinds-of-rules.ts';
import type { Subject } from './change-groups.ts';
import { PASS, sideVerdict, type SideVerdict } from './side-verdict.ts';

export type Side = 'old' | 'new';

/** The old and the new version. Each may be several policies: bindings of Kubernetes' own policies are. */
export interface PolicyVersions {
  /** Empty: there is none, as before the first revision. */
  readonly old: readonly AuditPolicy[];
  readonly new: readonly AuditPolicy[];
}

/**
 * How a policy is named in a host that serves both versions; `~update`: with its rules for updates; `~request`: as it is written,
 * for requests.
 */
function sideId(side: Side, id: string): string {
  return `${id}~${side}`;
}

/** Whether a host has the new version under an id. */
function isNewVersion(id: string): boolean {
  return /~new(?:~update|~request)?$/.test(id);
}

function updateId(id: string): string {
  return `${id}~update`;
}

function requestId(side: Side, id: string): string {
  return `${sideId(side, id)}~request`;
}

/** Exceptions from a policy, as they are from both of its versions. */
export function fromBothVersions(exceptions: readonly ExceptionTerms[]): readonly ExceptionTerms[] {
  const idsOf = (id: string): readonly string[] =>
    (['old', 'new'] as const).flatMap((side) => {
      const own = sideId(side, id);
      return [own, updateId(own), requestId(side, id)];
    });
  return exceptions.map((terms) => ({
    ...terms,
    policies: terms.policies.flatMap((one) => idsOf(one.id).map((id) => ({ ...one, id }))),
  }));
}

type PreviewHost = Pick<EvaluationHost, 'serve' | 'evaluate' | 'except'>;

/** Hosts that look up other objects for the new version than for the old one, such as changed parameters. */
export class SeparateHosts implements PreviewHost {
  readonly #old: PreviewHost;
  readonly #new: PreviewHost;

  constructor(hosts: Readonly<Record<Side, PreviewHost>>) {
    this.#old = hosts.old;
    this.#new = hosts.new;
  }

  except(exceptions: readonly ExceptionTerms[]): void {
    this.#old.except(exceptions);
    this.#new.except(exceptions);
  }

  async serve(policies: readonly HostedPolicy[]): Promise<ReadonlyMap<string, LoadOutcome>> {
    const outcomes = await Promise.all([
      this.#old.serve(policies.filter(({ id }) => !isNewVersion(id))),
      this.#new.serve(policies.filter(({ id }) => isNewVersion(id))),
    ]);
    return new Map(outcomes.flatMap((one) => [...one]));
  }

  async evaluate(
    object: Parameters<EvaluationHost['evaluate']>[0],
    { policies = [] }: { readonly policies?: Iterable<string> } = {},
  ): Promise<readonly ObjectVerdict[]> {
    const { old = [], new: changed = [] } = Object.groupBy(policies, (id) => (isNewVersion(id) ? 'new' : 'old'));
    const verdicts = await Promise.all([
      this.#old.evaluate(object, { policies: old }),
      this.#new.evaluate(object, { policies: changed }),
    ]);
    return verdicts.flat();
  }
}

/** Both versions, and what is known of them. */
export class PreviewSides {
  /** With ids of their own, and their side as name. */
  readonly policies: readonly AuditPolicy[];
  readonly #versions: PolicyVersions;
  readonly #own: Readonly<Record<Side, readonly AuditPolicy[]>>;
  readonly #unknown = new Set<Side>();

  constructor(versions: PolicyVersions) {
    const policies = { old: ofSide('old', versions.old), new: ofSide('new', versions.new) };
    this.#versions = versions;
    this.#own = policies;
    this.policies = [...policies.old, ...policies.new];
  }

  /** @param outcomes of the policies that existing objects can be judged by */
  loaded(outcomes: ReadonlyMap<string, LoadOutcome>): void {
    for (const side of ['old', 'new'] as const) {
      if (this.#own[side].some(({ id }) => outcomes.get(id)?.ok !== true)) {
        this.#unknown.add(side);
      }
    }
  }

  /** Whether the verdicts of a version are known; of an old one that there is not, too. */
  isKnown(side: Side): boolean {
    return !this.#unknown.has(side);
  }

  isNewPolicy(): boolean {
    return this.#own.old.length === 0;
  }

  /** The policies again, to be asked about updates of objects. */
  forUpdates(hosted: readonly HostedPolicy[]): readonly HostedPolicy[] {
    return hosted.flatMap((one) => {
      const { match } = this.policies.find(({ id }) => id === one.id) ?? {};
      const id = updateId(one.id);
      return match?.rules.some(({ operations }) => hasOrAll(operations, 'UPDATE')) === true
        ? [{ ...one, id, match, definition: { ...one.definition, id } }]
        : [];
    });
  }

  /** The ids of a version for updates. */
  updateIds(side: Side): readonly string[] {
    return this.isKnown(side) ? this.#own[side].map(({ id }) => updateId(id)) : [];
  }

  /** The policies again as they are written, to be asked about requests: these say what existing objects do not. */
  forRequests(): readonly HostedPolicy[] {
    return (['old', 'new'] as const).flatMap((side) =>
      this.#versions[side].map(({ id: own, definition, match, isForTenant, provided }) => {
        const id = requestId(side, own);
        return {
          id,
          definition: { ...definition, id },
          ...(match === undefined ? {} : { match }),
          ...(isForTenant === true ? { isForTenant } : {}),
          ...(match?.namespace === undefined ? {} : { namespace: match.namespace }),
          ...(provided === undefined ? {} : { provided }),
        };
      }),
    );
  }

  /** The ids of a version for requests. */
  requestIds(side: Side): readonly string[] {
    return this.#versions[side].map(({ id }) => requestId(side, id));
  }

  /** What a version says of a request. */
  requestVerdict(side: Side, verdicts: readonly ObjectVerdict[]): SideVerdict {
    const ids = new Set(this.requestIds(side));
    return sideVerdict(verdicts.filter(({ policy }) => ids.has(policy)));
  }

  /** What a version says. Without an old one, and where it is not known, nothing is in force before. */
  verdictOf(side: Side, verdicts: readonly ObjectVerdict[]): SideVerdict {
    const ids = new Set(this.#own[side].flatMap(({ id }) => [id, updateId(id)]));
    return this.isKnown(side) ? sideVerdict(verdicts.filter(({ policy }) => ids.has(policy))) : PASS;
  }

  /** Whether objects of a kind are judged themselves, or the pods that they make later. */
  subjectOf(type: ApiResource): Subject {
    const versions = [...this.#versions.old, ...this.#versions.new];
    return versions.some((policy) => isForKind(policy, type)) ? 'objects' : 'nextPods';
  }
}

/** A policy for pods is asked about the pods of templates, too, whether or not it checks them when workloads are written. */
function ofSide(side: Side, policies: readonly AuditPolicy[]): readonly AuditPolicy[] {
  return policies.map((policy) => {
    const id = sideId(side, policy.id);
    const { match, definition } = policy;
    return {
      ...policy,
      id,
      name: side,
      definition: { ...definition, id, podTemplates: 'Enforce' },
      match: match && { ...match, podTemplates: 'Enforce' },
    };
  });
}

/** Whether the own rules of a policy match a kind, or it checks pod templates when workloads are written. */
function isForKind({ match }: AuditPolicy, type: ApiResource): boolean {
  if (match === undefined) {
    return false;
  }
  const { podTemplates, ...own }: PolicyMatch = match;
  return kindsOfRules(podTemplates === 'Enforce' ? match : own, [type]).kinds.length > 0;
}
