// The status of a copy by the results of its templates.
import { isDeepStrictEqual } from 'node:util';
import {
  type ComplianceState,
  type Condition,
  DEPENDENCIES_VALID,
  type PendingDependency,
  type PendingTemplate,
  type Policy,
  type PolicyStatus,
  type Readiness,
  setCondition,
  setReadiness,
  type TemplateDetails,
  type TemplateState,
} from '../../../resources/index.ts';
import { inertText, shortened } from '../../../values/index.ts';
import { withMessage } from '../../history/status-history.ts';
import { POLICY_REASONS } from '../../policy/policy-reasons.ts';
import { worstCompliance } from '../../policy/worst-compliance.ts';

/** Length of the message of a Policy, a cell of a table. Characters. */
const MAX_SUMMARY_LENGTH = 200;
/** Findings that a condition names. */
const MAX_FINDINGS = 10;

/** Characters of the details of all templates: an object has 1.5 MiB at most, and its spec may need half of it. */
const MAX_DETAILS_LENGTH = 600_000;
/**
 * What is kept of each template if the details are too long, in the order in which it is tried: messages, their length, and
 * unmet dependencies. A thousand templates fit with the last one.
 */
const DETAIL_LIMITS = [
  { messages: 10, length: 1024, pending: 100 },
  { messages: 3, length: 512, pending: 10 },
  { messages: 1, length: 128, pending: 1 },
] as const;
/** Characters of the message about the unmet dependencies of one template. */
const MAX_PENDING_LENGTH = 400;

/** The result of one template. */
export interface TemplateResult {
  readonly name: string;
  readonly state: TemplateState;
  /** Undefined while it is not known. */
  readonly compliant: ComplianceState | undefined;
  /** `State; text`, as Open Cluster Management writes it. Empty if there is none. */
  readonly message: string;
  /** The generation of its object that was evaluated. */
  readonly observedGeneration?: number | undefined;
  readonly pending: readonly PendingDependency[];
  /** Why its object is not removed yet, such as a right that is missing. */
  readonly removal?: string | undefined;
}

/** What is wrong with the dependencies of a Policy. */
export interface DependencyProblem {
  readonly type: string;
  readonly message: string;
}

/** Reasons of the condition `DependenciesValid`. */
const FINDING_REASONS: Readonly<Record<string, string>> = {
  cycle: 'Cycle',
  'not-found': 'NotFound',
  'not-placed': 'NotPlaced',
  invalid: 'Invalid',
};

/**
 * The status of a copy.
 * @param problems what is wrong with its dependencies
 * @param failure the failure of the pass that ends with this status
 * @param now milliseconds since 1970
 */
export function copyStatus(
  copy: Policy,
  results: readonly TemplateResult[],
  problems: readonly DependencyProblem[],
  failure: Readiness | undefined,
  now: number,
): PolicyStatus {
  const generation = copy.metadata.generation ?? 0;
  const compliant = worstCompliance(results.map((result) => result.compliant));
  const message = failure?.message ?? summaryOf(results);
  const pending = pendingTemplates(results);
  const readiness = failure ?? readinessOf(results, compliant, message);
  const conditions = setReadiness(copy.status?.conditions, readiness, generation, now);
  return {
    ...(compliant === undefined ? {} : { compliant }),
    ...(message === '' ? {} : { message }),
    ...(pending.length === 0 ? {} : { pending }),
    details: boundedDetails(
      results.map((result) => detailsOf(result, copy, now)),
      copy.status?.details ?? [],
    ),
    conditions: setCondition(conditions, dependencyCondition(problems, generation), now),
    observedGeneration: generation,
  };
}

/**
 * The status of a copy after a pass that failed before anything was planned: the templates are as far as they were. What
 * users must change first has no compliance.
 */
export function unplannedStatus({ metadata, status }: Policy, failure: Readiness, now: number): PolicyStatus {
  const { compliant, ...rest } = status ?? {};
  const isStalled = failure.state === 'stalled';
  const generation = metadata.generation ?? 0;
  return {
    ...rest,
    ...(compliant === undefined || isStalled ? {} : { compliant }),
    message: failure.message,
    conditions: setReadiness(status?.conditions, failure, generation, now),
    ...(isStalled ? { observedGeneration: generation } : {}),
  };
}

function detailsOf(
  { name, state, compliant, message, observedGeneration, pending }: TemplateResult,
  copy: Policy,
  now: number,
): TemplateDetails {
  const before = copy.status?.details?.find(({ templateMeta }) => templateMeta?.name === name);
  const known = before?.history ?? [];
  const isKnown = message === '' || isSameMessage(known[0]?.message, message);
  const history = isKnown ? known : withMessage(known, message, now);
  return {
    templateMeta: { name },
    ...(compliant === undefined ? {} : { compliant }),
    history,
    state,
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
    ...(pending.length === 0 ? {} : { pending }),
  };
}

/**
 * The details with less of each template, if they are too long for an object.
 * @param before those in the status, which stay if they are one of the results: a limit that is chosen anew, now that
 *   messages are short, would change the status without a change of a template
 */
function boundedDetails(
  details: readonly TemplateDetails[],
  before: readonly TemplateDetails[],
): readonly TemplateDetails[] {
  if (isDeepStrictEqual(details, before)) {
    return details;
  }
  const limited = DETAIL_LIMITS.map((limit) => details.map((one) => limitedDetails(one, limit)));
  const fitting = [details, ...limited].filter((one) => JSON.stringify(one).length <= MAX_DETAILS_LENGTH);
  return fitting.find((one) => isDeepStrictEqual(one, before)) ?? fitting[0] ?? limited.at(-1) ?? [];
}

function limitedDetails(
  { history = [], pending, ...rest }: TemplateDetails,
  { messages, length, pending: most }: (typeof DETAIL_LIMITS)[number],
): TemplateDetails {
  return {
    ...rest,
    history: history
      .slice(0, messages)
      .map(({ message = '', ...entry }) => ({ ...entry, message: shortened(message, length) })),
    ...(pending === undefined ? {} : { pending: pending.slice(0, most) }),
  };
}

/** Whether a message of the status is this one, perhaps shortened. */
function isSameMessage(stored: string | undefined, current: string): boolean {
  const message = inertText(current);
  return stored === message || DETAIL_LIMITS.some(({ length }) => stored === shortened(message, length));
}

function pendingTemplates(results: readonly TemplateResult[]): readonly PendingTemplate[] {
  return results.flatMap(({ name, pending }) => {
    const [first] = pending;
    const message = shortened(pending.map(dependencyText).join('; '), MAX_PENDING_LENGTH);
    return first === undefined ? [] : [{ template: name, reason: first.reason, message }];
  });
}

/** The most important message, for a cell of a table. */
function summaryOf(results: readonly TemplateResult[]): string {
  const failed = results.find(({ compliant, pending }) => compliant === 'NonCompliant' && pending.length === 0);
  if (failed !== undefined) {
    return shortened(`${failed.name}: ${violationsFirst(withoutState(failed.message))}`, MAX_SUMMARY_LENGTH);
  }
  const removing = results.find(({ removal }) => removal !== undefined);
  if (removing !== undefined) {
    return shortened(`${removing.name} is being removed: ${withoutState(removing.removal ?? '')}`, MAX_SUMMARY_LENGTH);
  }
  const waiting = results.find(({ pending }) => pending.length > 0);
  const [first] = waiting?.pending ?? [];
  if (waiting === undefined || first === undefined) {
    return '';
  }
  return shortened(`${waiting.name} waits for ${dependencyText(first)}`, MAX_SUMMARY_LENGTH);
}

/** `Policy policies.kafka-operator, which is NonCompliant`. Users expect Compliant; another required state is named. */
function dependencyText({ kind, namespace, name, actual, reason, required, message }: PendingDependency): string {
  const object = `${kind} ${namespace === undefined || kind.endsWith('Policy') ? '' : `${namespace}/`}${name}`;
  const expected = required === 'Compliant' ? '' : ` and must be ${required}`;
  const why = message ?? (actual === undefined ? REASON_TEXTS[reason] : `which is ${actual}${expected}`);
  return `${object}, ${why}`;
}

const REASON_TEXTS: Readonly<Record<PendingDependency['reason'], string>> = {
  NoSuchKind: 'whose kind the cluster does not have',
  NotFound: 'which does not exist',
  NoStatus: 'which has no status yet',
  Mismatch: 'which has another state',
  NotPlaced: 'which is not placed on this cluster',
  Cycle: 'which waits for it in turn: a cycle',
  Stale: 'whose status is about an older spec',
  Forbidden: 'which the controller may not read',
  GetFailed: 'which could not be read',
};

function readinessOf(
  results: readonly TemplateResult[],
  compliant: ComplianceState | undefined,
  message: string,
): Readiness {
  if (results.some(({ state }) => state === 'Failed')) {
    return { state: 'stalled', reason: POLICY_REASONS.templateError, message };
  }
  if (results.some((result) => result.compliant === undefined)) {
    return { state: 'reconciling', reason: POLICY_REASONS.evaluating, message: 'some templates are being evaluated' };
  }
  // With ignorePending, a template that waits is Compliant, and may wait without end.
  if (results.some((one) => one.state === 'Removing' || (one.pending.length > 0 && one.compliant !== 'Compliant'))) {
    return { state: 'reconciling', reason: POLICY_REASONS.pending, message };
  }
  const text = message === '' ? `all templates are evaluated: ${compliant ?? ''}` : message;
  return { state: 'ready', reason: POLICY_REASONS.evaluated, message: text };
}

function dependencyCondition(
  problems: readonly DependencyProblem[],
  observedGeneration: number,
): Omit<Condition, 'lastTransitionTime'> {
  const [first] = problems;
  const type = DEPENDENCIES_VALID;
  if (first === undefined) {
    return { type, status: 'True', observedGeneration, reason: 'Valid', message: '' };
  }
  const message = problems
    .slice(0, MAX_FINDINGS)
    .map((problem) => problem.message)
    .join('; ');
  const reason = FINDING_REASONS[first.type] ?? 'Invalid';
  return { type, status: 'False', observedGeneration, reason, message };
}

/** The text from its first violation: notifications before it would fill the cell. */
function violationsFirst(text: string): string {
  const start = text.indexOf('violation - ');
  return text.startsWith('notification - ') && start > 0 ? text.slice(start) : text;
}

/** The text of a message without the state in front, on one line: kubectl cuts a cell at the first line break. */
function withoutState(message: string): string {
  return message
    .replace(/^(?:NonCompliant|Compliant|Pending); */, '')
    .replace(/\s+/g, ' ')
    .trim();
}
