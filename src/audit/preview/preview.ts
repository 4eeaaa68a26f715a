// What a new version of a policy would change for existing objects.
import type { ApiResource, Cluster } from '../../cluster/index.ts';
import type { EvaluationHost, HostedPolicy, LoadOutcome } from '../../evaluation/index.ts';
import { type ExceptionTerms, groupResourceOf } from '../../resources/index.ts';
import { auditPlan, pagesOf } from '../audit-cluster.ts';
import type { AuditRun, ObjectPage } from '../audit-kind.ts';
import { type GivenObject, givenKinds, givenPages } from '../audit-objects.ts';
import { type Coverage, isIncomplete, NO_COUNTS } from '../coverage.ts';
import { type AuditPlan, type AuditScope, type KindListing, planAudit } from '../plan-audit.ts';
import { type ChangeCounts, type ChangeGroup, type ChangeGroups, mergedChanges } from './change-groups.ts';
import { compareRequests, type RecordedRequest } from './compare-requests.ts';
import { compareRevisions } from './compare-revisions.ts';
import { ComparedVerdicts, type PreviewState } from './compared-verdicts.ts';
import { ObjectOwners } from './object-owners.ts';
import { fromBothVersions, type PolicyVersions, PreviewSides } from './preview-sides.ts';

/** What a preview found. */
export interface Preview {
  /** `none`: the policy is new. `unknown`: the old version cannot be judged by, so that all that is rejected is newly rejected. */
  readonly before: 'known' | 'none' | 'unknown';
  /** `unknown`: the new version cannot be judged by, and nothing is known of what it changes. */
  readonly after: 'known' | 'unknown';
  readonly counts: ChangeCounts;
  readonly groups: readonly ChangeGroup[];
  /** With `old` and `new` as policies. */
  readonly coverage: readonly Coverage[];
}

/** Whether something is not known, so that what was found may not be all. */
export function isUnfinished({ after, coverage }: Preview): boolean {
  return after === 'unknown' || coverage.some(isIncomplete);
}

/** What a preview runs with. */
export interface PreviewOptions extends PolicyVersions, Pick<AuditRun, 'signal' | 'onProgress' | 'now'> {
  readonly host: Pick<EvaluationHost, 'serve' | 'evaluate' | 'except'>;
  /** Those that are in force for the policy. Default: none. */
  readonly exceptions?: readonly ExceptionTerms[];
  readonly scope?: Pick<AuditScope, 'namespace' | 'includesSecrets' | 'hasCluster'>;
  /** Requests that were recorded. Default: none. */
  readonly requests?: readonly RecordedRequest[];
}

/** Compares the versions on the objects of a cluster. @throws ApiError, ClusterError when its kinds cannot be read */
export async function previewCluster(
  cluster: Pick<Cluster, 'list' | 'discovery'>,
  options: PreviewOptions,
): Promise<Preview> {
  const { signal } = options;
  const request = signal === undefined ? {} : { signal };
  const served = await cluster.discovery.resources(request);
  const unavailable = (await cluster.discovery.unavailable?.(request)) ?? [];
  return await preview(options, served, { ...options.scope, unavailable }, (listing) =>
    pagesOf(cluster, listing, signal),
  );
}

/** Compares the versions on given objects. */
export async function previewObjects(objects: readonly GivenObject[], options: PreviewOptions): Promise<Preview> {
  const scope = { ...options.scope, knowsAllKinds: false };
  return await preview(options, givenKinds(objects), scope, (listing) => givenPages(objects, listing));
}

type ListPages = (listing: Pick<KindListing, 'type' | 'namespace'>) => AsyncIterable<ObjectPage>;

async function preview(
  options: PreviewOptions,
  served: readonly ApiResource[],
  scope: AuditScope,
  pages: ListPages,
): Promise<Preview> {
  const { host, signal, requests = [] } = options;
  const sides = new PreviewSides(options);
  const exceptions = fromBothVersions(options.exceptions ?? []);
  host.except(exceptions);
  const plan = planAudit(sides.policies, served, scope);
  const forRequests = requests.length === 0 ? [] : sides.forRequests();
  const outcomes = await host.serve([...plan.hosted, ...sides.forUpdates(plan.hosted), ...forRequests]);
  sides.loaded(outcomes);
  const state: PreviewState = { sides, host, owners: new ObjectOwners(), workloads: new Map() };
  const judged = await judge({ ...options, exceptions }, knownPart(plan, sides, outcomes), outcomes, { state, pages });
  const revisions = await compareRevisions(state, served, { pagesOf: pages, namespace: scope.namespace, signal });
  const recorded = await compareRequests(state, requests, signal);
  return {
    before: sides.isNewPolicy() ? 'none' : sides.isKnown('old') ? 'known' : 'unknown',
    after: sides.isKnown('new') ? 'known' : 'unknown',
    ...mergedChanges([...judged.changes, revisions.changes, recorded], state.owners),
    coverage: [...judged.coverage, ...revisions.coverage],
  };
}

/** The plan without versions that are not known, and nothing where the new one is not. */
function knownPart(plan: AuditPlan, sides: PreviewSides, outcomes: ReadonlyMap<string, LoadOutcome>): AuditPlan {
  const isJudged = ({ name }: KindListing['policies'][number]): boolean =>
    sides.isKnown('new') && (name === 'new' || sides.isKnown('old'));
  return {
    hosted: plan.hosted,
    listings: plan.listings.flatMap((listing) => {
      const policies = listing.policies.filter(isJudged);
      return policies.length === 0 ? [] : [{ ...listing, policies }];
    }),
    coverage: [...plan.coverage, ...plan.hosted.flatMap((one) => notLoaded(one, sides, outcomes.get(one.id)))],
  };
}

function notLoaded(
  { id }: HostedPolicy,
  { policies }: PreviewSides,
  outcome: LoadOutcome | undefined,
): readonly Coverage[] {
  const { name: policy = '' } = policies.find((one) => one.id === id) ?? {};
  return outcome?.ok === false
    ? [
        {
          policy,
          state: 'Failed',
          reason: 'NotLoaded',
          message: `${outcome.reason}: ${outcome.message}`,
          counts: NO_COUNTS,
        },
      ]
    : [];
}

async function judge(
  options: PreviewOptions,
  plan: AuditPlan,
  outcomes: ReadonlyMap<string, LoadOutcome>,
  { state, pages }: { readonly state: PreviewState; readonly pages: ListPages },
): Promise<{ readonly changes: readonly ChangeGroups[]; readonly coverage: readonly Coverage[] }> {
  const { host } = options;
  const compared = new Map<string, ComparedVerdicts>();
  const coverage: Coverage[] = [];
  const parts = auditPlan(
    plan,
    (listing) => {
      compared.get(keyOf(listing))?.restart();
      return pages(listing);
    },
    {
      ...options,
      host: {
        serve: () => Promise.resolve(outcomes),
        evaluate: (object, evaluation) => host.evaluate(object, evaluation),
      },
      withVerdicts: (verdicts, listing) => {
        const one = new ComparedVerdicts(verdicts, listing.type, state);
        compared.set(keyOf(listing), one);
        return one;
      },
    },
  );
  for await (const part of parts) {
    coverage.push(...part.coverage);
  }
  return { changes: [...compared.values()].map(({ changes }) => changes), coverage };
}

function keyOf({ type, namespace = '' }: Pick<KindListing, 'type' | 'namespace'>): string {
  return `${groupResourceOf(type)}/${type.version} ${namespace}`;
}
