// Tries new revisions with the parameters that exist, beside what serves: only what a change would newly refuse counts.
import type { PrevalidationResult } from '../../control/index.ts';
import { INVALID_PARAMETERS, refusedText, type RefusedReport } from '../../control/index.ts';
import type { ParametersDefinition, PolicyDefinition } from '../../engine/index.ts';
import { moduleUses } from '../../engine/definition/index.ts';
import type { LoadOutcome, LoadRequest, RefusedNamespace } from '../../evaluation/index.ts';
import { MAX_WARNING_LENGTH, namespaceOfPolicyId } from '../../resources/index.ts';
import { errorText, listed, shortened } from '../../values/index.ts';
import type { LoadedRevision } from '../policies/registry-entry.ts';
import type { ExistingParameters, ExistingParameterObjects } from './existing-parameters.ts';
import { refusedReport, servingLoad } from './parameter-checks.ts';
import { parametersFingerprint } from './parameters-fingerprint.ts';

export interface ParameterTrialsCollaborators {
  /** Loads a policy and tries it with parameters. */
  readonly load: (request: LoadRequest) => Promise<LoadOutcome>;
  readonly parameters: Pick<ExistingParameters, 'read'>;
  /** What serves of a policy on this replica. */
  readonly serving: (id: string) => LoadedRevision | undefined;
}

/** Why a revision cannot serve, or what its status should say. */
export type TrialResult =
  | Exclude<PrevalidationResult, { readonly ok: true }>
  | { readonly ok: true; readonly warning?: string };

/** What the revision that serves does with the namespaces that a new one refuses. */
type Today =
  | { readonly kind: 'tried'; readonly tried: ReadonlySet<string>; readonly refused: readonly RefusedNamespace[] }
  | { readonly kind: 'nothingServes' }
  | { readonly kind: 'unknown'; readonly why: string };

/** The namespaces that a new revision refuses. */
interface Comparison {
  readonly tried: number;
  /** Valid with what serves. */
  readonly newly: readonly RefusedNamespace[];
  /** Refused by what serves as well. */
  readonly before: readonly RefusedNamespace[];
  /** Neither is known. */
  readonly unknown: readonly RefusedNamespace[];
  readonly why: string;
}

export class ParameterTrials {
  readonly #collaborators: ParameterTrialsCollaborators;

  constructor(collaborators: ParameterTrialsCollaborators) {
    this.#collaborators = collaborators;
  }

  /**
   * Whether a policy may be rolled out with the parameters that exist.
   * @param request loads the new revision
   * @param spec of the new revision
   * @param serving uid of the PolicyRevision that serves, as the controller knows it
   */
  async try(
    request: LoadRequest,
    spec: unknown,
    serving: string | undefined,
    signal: AbortSignal,
  ): Promise<TrialResult> {
    const all = parametersOf(request.definition);
    if (all.length === 0) {
      return { ok: true };
    }
    const current = this.#collaborators.serving(request.id);
    let found: ExistingParameterObjects;
    try {
      const both = [...all, ...(current === undefined ? [] : parametersOf(current.definition))];
      found = await this.#collaborators.parameters.read(both, namespaceOfPolicyId(request.id), signal);
    } catch (error) {
      const message = `the parameters that exist cannot be read: ${errorText(error)}`;
      return { ok: false, reason: 'FetchFailed', message, isTransient: true };
    }
    const { objects } = found;
    const namespaces = [...new Set(all.flatMap((one) => found.namespacesOf(one)))].toSorted();
    const outcome = await this.#collaborators.load({ ...request, trial: { objects, namespaces } });
    if (!outcome.ok) {
      const { reason, message, transient } = outcome;
      return { ok: false, reason, message, isTransient: transient };
    }
    const { tried = 0, refused = [] } = outcome.refused ?? {};
    if (refused.length === 0) {
      return { ok: true };
    }
    const today = await this.#today(request.id, current, serving, { objects, namespaces: namesOf(refused) });
    const comparison = compared(tried, refused, today);
    const result = verdict(
      comparison,
      today.kind === 'nothingServes',
      all.some(({ onRollout }) => onRollout === 'Fail'),
    );
    if (result.ok) {
      return result;
    }
    const blocking = namesOf([...comparison.newly, ...comparison.unknown]);
    const parameters = parametersFingerprint(spec, namespaceOfPolicyId(request.id), objects, blocking);
    return parameters === undefined ? result : { ...result, parameters };
  }

  /** Has what serves judge the same parameters. */
  async #today(
    id: string,
    current: LoadedRevision | undefined,
    serving: string | undefined,
    trial: { readonly objects: ExistingParameterObjects['objects']; readonly namespaces: readonly string[] },
  ): Promise<Today> {
    if (serving !== undefined && current?.revision?.uid !== serving) {
      return { kind: 'unknown', why: 'this replica does not have the revision that serves' };
    }
    if (current === undefined) {
      return { kind: 'nothingServes' };
    }
    const outcome = await this.#collaborators.load(servingLoad(id, current, { ...trial, countsMissing: true }));
    if (!outcome.ok) {
      return { kind: 'unknown', why: `the revision that serves cannot be tried with them: ${outcome.message}` };
    }
    const { tried = 0, refused = [] } = outcome.refused ?? {};
    return { kind: 'tried', tried: new Set(trial.namespaces.slice(0, tried)), refused };
  }
}

function parametersOf(definition: PolicyDefinition): readonly ParametersDefinition[] {
  return moduleUses(definition).flatMap(({ parameters }) => (parameters === undefined ? [] : [parameters]));
}

function compared(tried: number, refused: readonly RefusedNamespace[], today: Today): Comparison {
  const none = { tried, newly: [], before: [], unknown: [], why: '' };
  switch (today.kind) {
    case 'nothingServes':
      return { ...none, newly: refused };
    case 'unknown':
      return { ...none, unknown: refused, why: today.why };
    case 'tried': {
      const known = new Set(today.refused.map(keyOf));
      const [before, others] = parted(refused, (one) => known.has(keyOf(one)));
      const [newly, unknown] = parted(others, ({ namespace }) => today.tried.has(namespace));
      const named = new Set(namesOf([...newly, ...unknown]));
      const why = 'they could not be tried with the revision that serves in time';
      return { tried, newly, before: before.filter(({ namespace }) => !named.has(namespace)), unknown, why };
    }
    default:
      return today satisfies never;
  }
}

/**
 * A tenant that what serves refuses already blocks no change, nor does one the first revision, which takes nothing from it. That
 * refuses every namespace only by a mistake of its own.
 */
function verdict(comparison: Comparison, isFirst: boolean, isStrict: boolean): TrialResult {
  const { tried, newly, unknown } = comparison;
  const isTenants = isFirst && (tried === 1 || namesOf(newly).length < tried);
  if (isTenants || newly.length + unknown.length === 0) {
    return { ok: true };
  }
  const message = messageOf(comparison);
  if (!isStrict) {
    return { ok: true, warning: shortened(message, MAX_WARNING_LENGTH) };
  }
  // What is not known may be so a moment later.
  const isTransient = newly.length === 0;
  const remedy = isTransient ? 'It is tried again by itself' : REMEDY;
  return { ok: false, reason: INVALID_PARAMETERS, message: `${message}. ${remedy}. ${WARN}`, isTransient };
}

const REMEDY = 'Correct these parameters or the policy: it is tried again when either changes';
const WARN = 'To roll it out nevertheless, set parameters.onRollout to Warn';

function messageOf({ tried, newly, before, unknown, why }: Comparison): string {
  const parts = [
    ...(newly.length === 0 ? [] : [refusedText(reportOf(tried, newly))]),
    ...(unknown.length === 0
      ? []
      : [`whether these are valid today is not known, as ${why}: ${namesText(reportOf(tried, unknown))}`]),
    ...(before.length === 0 ? [] : [`invalid before, and not counted: ${namesText(reportOf(tried, before))}`]),
  ];
  return parts.join('; ');
}

/** `3 namespaces (a, b, c)`. */
function namesText({ count, first }: RefusedReport): string {
  const names = listed(
    first.map(({ namespace }) => namespace || '(no namespace)'),
    first.length,
    ', ',
    count,
  );
  return `${count} ${count === 1 ? 'namespace' : 'namespaces'} (${names})`;
}

function reportOf(tried: number, refused: readonly RefusedNamespace[]): RefusedReport {
  return refusedReport({ tried, refused });
}

function keyOf({ namespace, unit }: RefusedNamespace): string {
  return JSON.stringify([namespace, unit]);
}

function namesOf(refused: readonly RefusedNamespace[]): readonly string[] {
  return [...new Set(refused.map(({ namespace }) => namespace))];
}

function parted<T>(
  all: readonly T[],
  isFirst: (one: T) => boolean,
): readonly [first: readonly T[], second: readonly T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))];
}
