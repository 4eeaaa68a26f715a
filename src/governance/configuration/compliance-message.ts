// Compliance messages in the grammar of OCM, which its tools parse.
import { compareStrings } from '../../go/index.ts';
import { REASON_TEXTS } from './compliance-reasons.ts';
import type { ReasonText } from './compliance-reasons.ts';

export type EvaluatedCompliance = 'Compliant' | 'NonCompliant';

/** What is known of one object, or of the objects that a template without a name matches. */
export interface ObjectResult {
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  /** Empty when no object matches. */
  readonly names: readonly string[];
  readonly isCompliant: boolean;
  /** One of REASONS. */
  readonly reason: string;
  /** For reasons without a phrase. */
  readonly message?: string;
}

/** The condition of one object template, without its time. */
export interface TemplateCondition {
  readonly isCompliant: boolean;
  readonly reason: string;
  readonly message: string;
}

/** `spec.evaluationInterval`. */
export interface EvaluationInterval {
  readonly compliant?: string;
  readonly noncompliant?: string;
}

/** Maximum length of messages, that of OCM. */
export const MAX_MESSAGE_LENGTH = 4_096;
const TRUNCATED = '...[truncated]';

/** The condition of an object template by the results of its objects: if any is noncompliant, of those only. */
export function templateCondition(resource: string, results: readonly ObjectResult[]): TemplateCondition {
  const isCompliant = results.every((result) => result.isCompliant);
  const shown = results.filter((result) => result.isCompliant === isCompliant);
  const groups = groupsOf(shown);
  return {
    isCompliant,
    reason: groups.map(({ reason }) => REASON_TEXTS.get(reason)?.reason ?? reason).join('; '),
    message: truncated(groups.flatMap((group) => segments(resource, group)).join('; ')),
  };
}

/** The condition with what the evaluation interval means for it. */
export function withInterval(condition: TemplateCondition, interval: EvaluationInterval): TemplateCondition {
  const field = condition.isCompliant ? 'compliant' : 'noncompliant';
  if (interval[field] !== 'never') {
    return condition;
  }
  const note = `This policy will not be evaluated again due to spec.evaluationInterval.${field} being set to "never".`;
  return { ...condition, message: truncated(`${condition.message}. ${note}`) };
}

/** The condition of a policy that has no object templates. */
export function noTemplatesMessage(policy: string): string {
  return `${policy} contains no object templates to check, and thus has no violations`;
}

/** The state of a policy by the conditions of its templates; undefined if there are none. */
export function complianceState(conditions: readonly TemplateCondition[]): EvaluatedCompliance | undefined {
  if (conditions.length === 0) {
    return undefined;
  }
  return conditions.every(({ isCompliant }) => isCompliant) ? 'Compliant' : 'NonCompliant';
}

/** `violation` or `notification`: the type of a condition, in the status and in messages. */
export function conditionType({ isCompliant }: Pick<TemplateCondition, 'isCompliant'>): 'violation' | 'notification' {
  return isCompliant ? 'notification' : 'violation';
}

/** The message of a policy: its state, and a part for each object template. */
export function complianceMessage(conditions: readonly TemplateCondition[]): string {
  const state = complianceState(conditions);
  if (state === undefined) {
    return 'ComplianceState is still unknown';
  }
  const parts = conditions.map((condition) => `${conditionType(condition)} - ${condition.message}`);
  return truncated([state, ...parts].join('; '));
}

/** A message from `spec.customMessage`, with the state in front, without which OCM's tools do not recognize it. */
export function customComplianceMessage(state: EvaluatedCompliance, text: string): string {
  const prefix = `${state}; `;
  return truncated(text.startsWith(prefix) ? text : prefix + text);
}

/** The default message, when `spec.customMessage` cannot be used. */
export function failedCustomMessage(defaultMessage: string, reason: string): string {
  return truncated(`${defaultMessage} (failure processing the custom message: ${reason})`);
}

/**
 * The results to report one after the other, when objects have had several: enforcing a policy reports what was wrong, and
 * then what was done. Objects with one result are in the last batch only.
 */
export function resultBatches(histories: readonly (readonly ObjectResult[])[]): readonly (readonly ObjectResult[])[] {
  const count = histories.reduce((most, { length }) => Math.max(most, length), 0);
  return Array.from({ length: count }, (_, batch) =>
    histories.flatMap((history) => {
      const result = history[history.length - count + batch];
      return result === undefined ? [] : [result];
    }),
  );
}

interface ReasonGroup {
  readonly reason: string;
  readonly results: readonly ObjectResult[];
}

/** The results by reason: first the known reasons in their order, then the others by name. */
function groupsOf(results: readonly ObjectResult[]): readonly ReasonGroup[] {
  const byReason = new Map<string, ObjectResult[]>();
  for (const result of results) {
    const ofReason = byReason.get(result.reason) ?? [];
    ofReason.push(result);
    byReason.set(result.reason, ofReason);
  }
  const others = [...byReason.keys()].filter((reason) => !REASON_TEXTS.has(reason)).sort(compareStrings);
  return [...REASON_TEXTS.keys(), ...others].flatMap((reason) => {
    const ofReason = byReason.get(reason);
    return ofReason === undefined ? [] : [{ reason, results: ofReason }];
  });
}

function segments(resource: string, { reason, results }: ReasonGroup): readonly string[] {
  const text = REASON_TEXTS.get(reason);
  if (text !== undefined) {
    return placesOf(results).map(({ names, namespaces }) => segment(resource, names, namespaces, text));
  }
  // Messages of their own say which object they are about.
  return results
    .toSorted((left, right) => compareStrings(left.namespace, right.namespace))
    .map(({ message = '' }) => message);
}

function segment(resource: string, names: string, namespaces: readonly string[], { phrase }: ReasonText): string {
  const [first = ''] = namespaces;
  if (first === '') {
    return `${resource}${names} ${phrase}`;
  }
  const place = namespaces.length === 1 ? `namespace ${first}` : `namespaces: ${namespaces.join(', ')}`;
  return `${resource}${names} ${phrase} in ${place}`;
}

interface Place {
  /** ` [a, b]`, or empty. */
  readonly names: string;
  readonly namespaces: readonly string[];
}

/** The names that are in the same namespaces. Upstream's order: one namespace before several, each by name. */
function placesOf(results: readonly ObjectResult[]): readonly Place[] {
  const namespacesOf = new Map<string, Set<string>>();
  for (const { namespace, names } of results) {
    for (const name of names.length === 0 ? [''] : names) {
      namespacesOf.set(name, (namespacesOf.get(name) ?? new Set()).add(namespace));
    }
  }
  const places = Map.groupBy(namespacesOf, ([, namespaces]) => JSON.stringify([...namespaces].sort(compareStrings)));
  return [...places.values()]
    .map((entries) => ({
      names: namesText(entries.map(([name]) => name)),
      namespaces: [...(entries[0]?.[1] ?? [])].sort(compareStrings),
    }))
    .sort(comparePlaces);
}

function comparePlaces(left: Place, right: Place): number {
  const order = Number(left.namespaces.length > 1) - Number(right.namespaces.length > 1);
  return order === 0 ? compareStrings(left.namespaces.join(', '), right.namespaces.join(', ')) : order;
}

/** An empty name stands for none. */
function namesText(names: readonly string[]): string {
  const known = names.filter((name) => name !== '');
  return known.length === 0 ? '' : ` [${known.sort(compareStrings).join(', ')}]`;
}

function truncated(message: string): string {
  const most = MAX_MESSAGE_LENGTH - TRUNCATED.length;
  return message.length <= MAX_MESSAGE_LENGTH ? message : message.slice(0, most).toWellFormed() + TRUNCATED;
}
