// The status of a ConfigurationPolicy by the plans of its evaluation.
import {
  type ConfigurationPolicy,
  type ObjectTemplateStatus,
  type Readiness,
  type RelatedObject,
  setReadiness,
  timeText,
} from '../../resources/index.ts';
import { asJson, type JsonObject } from '../../values/index.ts';
import {
  complianceMessage,
  complianceState,
  conditionType,
  customComplianceMessage,
  failedCustomMessage,
  mergedRelatedObjects,
  noTemplatesMessage,
  type ObjectPlan,
  REASONS,
  relatedKey,
  type RelatedObjectEntry as EvaluatedObject,
  relatedObjects,
  resultBatches,
  type TemplateCondition,
  templateCondition,
  templateHistories,
  type ObjectTemplatePlan,
  withInterval,
} from '../configuration/index.ts';
import { withMessage } from '../history/status-history.ts';
import { NO_TEMPLATE_OBJECTS, resolveTemplates } from '../templates/index.ts';

export type ConfigurationStatus = NonNullable<ConfigurationPolicy['status']>;

/** The result of an evaluation. */
export type ConfigurationEvaluation =
  | { readonly plans: readonly ObjectTemplatePlan[] }
  /** The templates of the policy could not be resolved. */
  | { readonly failure: string };

/** The parts of an evaluation that its status reports. */
export type EvaluationReport = { readonly plans: readonly ReportedPlan[] } | { readonly failure: string };

type ReportedPlan = Pick<ObjectTemplatePlan, 'resource' | 'result'> & {
  readonly objects: readonly Pick<ObjectPlan, 'type' | 'name' | 'history' | 'properties'>[];
};

/** An evaluation without the objects that its plans carry: they are most of it. */
export function reportOf(evaluation: ConfigurationEvaluation): EvaluationReport {
  return 'failure' in evaluation
    ? evaluation
    : {
        plans: evaluation.plans.map(({ objects, ...plan }) => ({
          ...plan,
          objects: objects.map(({ type, name, history, properties }) => ({
            type,
            name,
            history,
            ...(properties === undefined ? {} : { properties }),
          })),
        })),
      };
}

/**
 * The status after an evaluation.
 * @param customMessage resolves `customMessage`. Default: by its templates
 */
export function evaluatedStatus(
  policy: ConfigurationPolicy,
  evaluation: EvaluationReport,
  readiness: Readiness,
  now: number,
  customMessage: CustomMessage = resolvedMessage,
): ConfigurationStatus {
  const { status: before, spec } = policy;
  const steps = 'plans' in evaluation ? stepsOf(policy, evaluation.plans) : [[failedTemplates(evaluation.failure)]];
  const conditions = (steps.at(-1) ?? []).map((condition) => withInterval(condition, spec.evaluationInterval ?? {}));
  const compliant = conditions.length === 0 ? 'Compliant' : complianceState(conditions);
  const allRelated =
    'plans' in evaluation ? relatedOf(evaluation.plans, before?.relatedObjects ?? []) : (before?.relatedObjects ?? []);
  const allDetails = conditions.map((condition, index) =>
    detailsOf(condition, before?.compliancyDetails?.[index], now),
  );
  const room = roomFor(policy);
  const related = fitting(withoutDiffs(allRelated, room.related), room.related);
  const details = fitting(allDetails, room.details);
  const omitted = [
    omittedText('objects, and only these are pruned', related, allRelated),
    omittedText('object templates', details, allDetails),
  ];
  const generation = policy.metadata.generation ?? 0;
  const status: ConfigurationStatus = {
    ...(compliant === undefined ? {} : { compliant }),
    compliancyDetails: details,
    ...(before?.lastEvaluated === undefined ? {} : { lastEvaluated: before.lastEvaluated }),
    lastEvaluatedGeneration: generation,
    relatedObjects: related,
    ...(before?.history === undefined ? {} : { history: before.history }),
    conditions: setReadiness(before?.conditions, withNote(readiness, omitted.join('')), generation, now),
    observedGeneration: generation,
  };
  return { ...status, history: historyOf(policy, status, [...steps.slice(0, -1), conditions], now, customMessage) };
}

/** The status while nothing is evaluated. */
export function unevaluatedStatus(
  { metadata, status: before }: ConfigurationPolicy,
  compliant: ConfigurationStatus['compliant'],
  readiness: Readiness,
  now: number,
): ConfigurationStatus {
  const { compliant: _, ...rest } = before ?? {};
  const generation = metadata.generation ?? 0;
  return {
    ...rest,
    ...(compliant === undefined ? {} : { compliant }),
    conditions: setReadiness(before?.conditions, readiness, generation, now),
    observedGeneration: generation,
  };
}

/** The conditions of all templates, one after the other: enforcing reports what was wrong, and then what was done. */
function stepsOf(
  { metadata }: ConfigurationPolicy,
  plans: readonly ReportedPlan[],
): readonly (readonly TemplateCondition[])[] {
  if (plans.length === 0) {
    const message = noTemplatesMessage(metadata.name ?? '');
    return [[{ isCompliant: true, reason: REASONS.noTemplates, message }]];
  }
  const all = plans.map((plan) =>
    resultBatches(templateHistories(plan)).map((results) => templateCondition(plan.resource, results)),
  );
  const count = Math.max(...all.map(({ length }) => length));
  return Array.from({ length: count }, (_, step) =>
    all.flatMap((batches) => batches[Math.max(0, step - (count - batches.length))] ?? []),
  );
}

function failedTemplates(message: string): TemplateCondition {
  return { isCompliant: false, reason: REASONS.templateFailed, message };
}

function detailsOf(
  { isCompliant, reason, message }: TemplateCondition,
  before: ObjectTemplateStatus | undefined,
  now: number,
): ObjectTemplateStatus {
  const type = conditionType({ isCompliant });
  const [last] = before?.conditions ?? [];
  const isSame = last?.type === type && last.reason === reason && last.message === message;
  const lastTransitionTime = isSame ? (last.lastTransitionTime ?? timeText(now)) : timeText(now);
  return {
    Compliant: isCompliant ? 'Compliant' : 'NonCompliant',
    Validity: {},
    conditions: [{ type, status: 'True', lastTransitionTime, reason, message }],
  };
}

function relatedOf(plans: readonly ReportedPlan[], before: readonly RelatedObject[]): readonly RelatedObject[] {
  const entries = plans.flatMap(({ objects }) =>
    objects.flatMap(({ type, name, history, properties }) => {
      const result = history.at(-1);
      if (result === undefined) {
        return [];
      }
      return relatedObjects(type, name === '' ? result : { ...result, names: [name] }, properties);
    }),
  );
  // The schema of the kind allows more than is ever written.
  const known = before as Parameters<typeof mergedRelatedObjects>[1];
  const merged = mergedRelatedObjects(entries, known);
  // The objects of a failed template are unknown: its related objects must not be pruned as dropped ones.
  const isFailed = plans.some(({ result }) => result?.isCompliant === false);
  return isFailed ? mergedRelatedObjects([...merged, ...left(merged, known)], known) : merged;
}

function left(merged: readonly EvaluatedObject[], before: readonly EvaluatedObject[]): readonly EvaluatedObject[] {
  const names = new Set(merged.map(relatedKey));
  return before.filter((object) => !names.has(relatedKey(object)));
}

/** Bytes of an object that API servers store: etcd's 1.5 MiB, less what a write adds. */
const MAX_OBJECT_BYTES = 1_450_000;
/** Bytes of metadata, conditions, and ten messages of four thousand characters. */
const OTHER_BYTES = 200_000;
/** Bytes of the status of a policy whose own spec leaves nothing. */
const MIN_ROOM = 50_000;

/** The bytes that a status has for its two long lists. */
function roomFor({ spec }: ConfigurationPolicy): { readonly related: number; readonly details: number } {
  const room = Math.max(MIN_ROOM, MAX_OBJECT_BYTES - OTHER_BYTES - bytesOf(spec));
  return { related: Math.floor(room * 0.7), details: Math.floor(room * 0.3) };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** The objects, without their differences if these are too long. */
function withoutDiffs(related: readonly RelatedObject[], room: number): readonly RelatedObject[] {
  if (bytesOf(related) <= room) {
    return related;
  }
  return related.map(({ properties: { diff: _diff, ...properties } = {}, ...object }) =>
    Object.keys(properties).length === 0 ? object : { ...object, properties },
  );
}

/** The first entries that fit. */
function fitting<Entry>(entries: readonly Entry[], room: number): readonly Entry[] {
  let bytes = 0;
  const end = entries.findIndex((entry) => (bytes += bytesOf(entry) + 1) > room);
  return end < 0 ? entries : entries.slice(0, end);
}

function omittedText(what: string, kept: readonly unknown[], all: readonly unknown[]): string {
  return kept.length === all.length
    ? ''
    : `; the status has only ${kept.length} of ${all.length} ${what}: split the policy`;
}

function withNote(readiness: Readiness, note: string): Readiness {
  const message = readiness.message === '' ? note.slice(2) : `${readiness.message}${note}`;
  return { ...readiness, message };
}

function historyOf(
  policy: ConfigurationPolicy,
  status: ConfigurationStatus,
  steps: readonly (readonly TemplateCondition[])[],
  now: number,
  customMessage: CustomMessage,
): NonNullable<ConfigurationStatus['history']> {
  let history = policy.status?.history;
  for (const [index, conditions] of steps.entries()) {
    // Each message has its own time.
    history = withMessage(history, messageOf(policy, status, conditions, customMessage), now + index);
  }
  return history ?? [];
}

/** The message for the history: the default one, or that of `customMessage`. */
function messageOf(
  policy: ConfigurationPolicy,
  status: ConfigurationStatus,
  conditions: readonly TemplateCondition[],
  customMessage: CustomMessage,
): string {
  const state = complianceState(conditions) ?? 'Compliant';
  const message = complianceMessage(conditions);
  const custom = policy.spec.customMessage?.[state === 'Compliant' ? 'compliant' : 'noncompliant'];
  if (custom === undefined || custom === '') {
    return message;
  }
  const context = { DefaultMessage: message, Policy: asJson({ ...policy, status }) };
  const resolved = customMessage(custom, context);
  return 'failure' in resolved
    ? failedCustomMessage(message, resolved.failure)
    : customComplianceMessage(state, resolved.text);
}

/** What `customMessage` says, or why it says nothing. */
export type CustomMessage = (
  custom: string,
  context: JsonObject,
) => { readonly text: string } | { readonly failure: string };

const resolvedMessage: CustomMessage = (custom, context) => {
  const result = resolveTemplates({ message: custom }, { objects: NO_TEMPLATE_OBJECTS, context });
  if (result.state !== 'resolved') {
    return { failure: result.state === 'failed' ? result.error.message : 'it looks up objects' };
  }
  const { message: text } = result.value as { readonly message?: unknown };
  return { text: typeof text === 'string' ? text : JSON.stringify(text) };
};
