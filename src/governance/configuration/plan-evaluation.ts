// Plans the evaluation of a ConfigurationPolicy. Pure: the policy and the objects of the source determine the plan.
import { Selector } from '../../resources/index.ts';
import type { KubernetesObject, ResourceType } from '../../resources/index.ts';
import { own } from '../../values/index.ts';
import type { ObjectResult } from './compliance-message.ts';
import { REASONS } from './compliance-reasons.ts';
import { desiredObjects, isNarrowed, MAX_POLICY_OBJECTS, REDACTED_REASON, templateResult } from './desired-objects.ts';
import type { DesiredObject, ObjectDefinition, ObjectScope } from './desired-objects.ts';
import { compareObject } from './object-comparison.ts';
import type { ComparisonOptions } from './object-comparison.ts';
import { diffRecord, statusDiff } from './object-diff.ts';
import { failed, objectResult } from './object-plan.ts';
import type { ObjectPlan, ObjectSettings } from './object-plan.ts';
import { ObjectReadError } from './object-source.ts';
import type { ObjectSource } from './object-source.ts';
import { comparisonTypeOf, complianceTypeOf } from './object-template.ts';
import type { ObjectTemplate } from './object-template.ts';
import type { RelatedObjectProperties } from './related-objects.ts';

/** A ConfigurationPolicy, of a shape that the kind's schema has checked. */
export interface EvaluatedPolicy extends ObjectScope {
  /** In any of the capitalisations that the schema accepts. */
  readonly remediationAction: string;
  /** The entries of `object-templates`, or those that `object-templates-raw` produces. */
  readonly templates: readonly ObjectTemplate[];
  /** Whether differences in the status are complete. Default: their first lines. */
  readonly hasFullDiffs?: boolean;
}

/** The plan of one object template. */
export interface ObjectTemplatePlan {
  readonly index: number;
  /** `pods`; empty if it is unknown. */
  readonly resource: string;
  readonly objects: readonly ObjectPlan[];
  /** Instead of objects: what is wrong with the template, or why it has no objects. */
  readonly result?: ObjectResult;
}

/** The plans of all object templates, in their order. */
export function planEvaluation(policy: EvaluatedPolicy, source: ObjectSource): readonly ObjectTemplatePlan[] {
  let left = MAX_POLICY_OBJECTS;
  return policy.templates.map((template, index) => {
    const plan = planTemplate(policy, template, index, source, left);
    left -= plan.objects.length;
    return plan;
  });
}

function planTemplate(
  policy: EvaluatedPolicy,
  template: ObjectTemplate,
  index: number,
  source: ObjectSource,
  mostObjects: number,
): ObjectTemplatePlan {
  const desired = desiredObjects(template, index, policy, source);
  if (desired.type === 'result') {
    return { index, resource: desired.resource, objects: [], result: desired.result };
  }
  const { resource: type, objects } = desired;
  if (objects.length > mostObjects) {
    const message = `expected the policy to have at most ${MAX_POLICY_OBJECTS} objects, got more: split it`;
    return failedTemplate(index, REASONS.objectSelector, message);
  }
  const plans = objects.map((object) =>
    new ObjectPlanner(template, index, type, object, settingsOf(policy, template, object), source).plan(),
  );
  return { index, resource: type.resource, objects: meantObjects(plans) };
}

/** Without those that a narrowed template does not mean, unless it means none. */
function meantObjects(plans: readonly ObjectPlan[]): readonly ObjectPlan[] {
  const meant = plans.filter(({ verdict, live }) => verdict !== 'absent' || live === undefined);
  return meant.length > 0 ? meant : plans;
}

function failedTemplate(index: number, reason: string, message: string): ObjectTemplatePlan {
  return { index, resource: '', objects: [], result: templateResult(false, reason, message) };
}

/** The results to report first, or last, of all objects of a template. */
export function templateHistories({
  objects,
  result,
}: Pick<ObjectTemplatePlan, 'result'> & {
  readonly objects: readonly Pick<ObjectPlan, 'history'>[];
}): readonly (readonly ObjectResult[])[] {
  return result === undefined ? objects.map(({ history }) => history) : [[result]];
}

/** It is not known whether an object is as the definition says. */
class ObjectUnknown extends Error {
  override readonly name = 'ObjectUnknown';
}

class ObjectPlanner {
  readonly #template: ObjectTemplate;
  readonly #index: number;
  readonly #source: ObjectSource;
  readonly #desired: DesiredObject;
  readonly #plan: Omit<ObjectPlan, 'verdict' | 'history'>;

  constructor(
    template: ObjectTemplate,
    index: number,
    type: ResourceType,
    desired: DesiredObject,
    settings: ObjectSettings,
    source: ObjectSource,
  ) {
    this.#template = template;
    this.#index = index;
    this.#source = source;
    this.#desired = desired;
    this.#plan = {
      type,
      namespace: desired.namespace,
      name: desired.name,
      settings,
      action: { type: 'none' },
      statusMatches: true,
      hasStatus: Object.hasOwn(desired.definition, 'status'),
      mismatches: [],
      desired: withoutStatus(desired.definition),
    };
  }

  plan(): ObjectPlan {
    try {
      return this.#desired.name === '' ? this.#planAny() : this.#planNamed();
    } catch (error) {
      if (error instanceof ObjectReadError) {
        const what = `Error retrieving an object for object-template at index [${this.#index}]`;
        return this.#failed(REASONS.readFailed, `${what}: ${error.message}`);
      }
      if (error instanceof ObjectUnknown) {
        return this.#failed(REASONS.updateFailed, error.message);
      }
      throw error;
    }
  }

  /** A message about values of the template. */
  #shown(message: string): string {
    return this.#desired.isSensitive ? REDACTED_REASON : message;
  }

  #failed(reason: string, message: string): ObjectPlan {
    return failed({ ...this.#plan, verdict: 'failed', history: [] }, reason, message);
  }

  #planNamed(): ObjectPlan {
    const { type, namespace, name } = this.#plan;
    const live = this.#source.get(type, namespace, name);
    if (complianceTypeOf(this.#template.complianceType) === 'mustnothave') {
      const isMeant = live === undefined || !isNarrowed(this.#template) || this.#matches(live);
      return isMeant ? this.#planRemoval(live) : this.#planOther(live);
    }
    return live === undefined ? this.#planCreation() : this.#planUpdate(live);
  }

  /** An object that is not as the template says: there is none, so that messages do not name it. */
  #planOther(live: KubernetesObject): ObjectPlan {
    const plan = this.#plan;
    const result = { ...objectResult(plan, true, REASONS.absent), names: [] };
    return { ...plan, live, verdict: 'absent', history: [result] };
  }

  #planRemoval(live: KubernetesObject | undefined): ObjectPlan {
    const plan = this.#plan;
    if (live === undefined) {
      return { ...plan, verdict: 'absent', history: [objectResult(plan, true, REASONS.absent)] };
    }
    return {
      ...plan,
      live,
      verdict: 'unwanted',
      history: [objectResult(plan, false, REASONS.unwanted)],
      action: plan.settings.isEnforced ? { type: 'delete' } : { type: 'none' },
    };
  }

  #planCreation(): ObjectPlan {
    const plan = this.#plan;
    const { desired, settings } = plan;
    return {
      ...plan,
      verdict: 'notFound',
      history: [objectResult(plan, false, REASONS.notFound)],
      action: settings.isEnforced ? { type: 'create', object: desired } : { type: 'none' },
    };
  }

  #planUpdate(live: KubernetesObject): ObjectPlan {
    const plan = { ...this.#plan, live, properties: propertiesOf(live) };
    const mismatch = objectResult(plan, false, REASONS.mismatch);
    const comparison = compareObject(this.#desired.definition, live, optionsOf(this.#template));
    if (comparison.type === 'failed') {
      return failed(
        { ...plan, verdict: 'failed', history: [mismatch] },
        REASONS.updateFailed,
        this.#shown(comparison.message),
      );
    }
    const { matches, statusMatches, isDoubtful, mismatches, merged } = comparison;
    const facts = { ...plan, statusMatches, mismatches };
    if (!matches || isDoubtful) {
      return { ...facts, verdict: 'unsure', history: [matches ? this.#found(facts) : mismatch], dryRun: merged };
    }
    if (statusMatches) {
      return { ...facts, verdict: 'found', history: [this.#found(facts)] };
    }
    const wanted = { ...live, status: own(this.#desired.definition, 'status') };
    const diff = statusDiff(plan.settings.diffRecord, live, wanted);
    const properties = { ...plan.properties, ...(diff === '' ? {} : { diff }) };
    return { ...facts, verdict: 'mismatch', history: [mismatch], properties };
  }

  #found(plan: Pick<ObjectPlan, 'namespace' | 'name' | 'statusMatches'>): ObjectResult {
    return objectResult(plan, plan.statusMatches, plan.statusMatches ? REASONS.found : REASONS.mismatch);
  }

  /** A template without a name is only reported: any object of the namespace may match it. */
  #planAny(): ObjectPlan {
    const { type, namespace } = this.#plan;
    const objects = this.#source.list(type, namespace, Selector.EVERYTHING);
    const names = objects.filter((object) => this.#matches(object)).map(({ metadata }) => metadata.name ?? '');
    const verdict = this.#verdictOfAny(names.length > 0, objects.length > 0);
    const result: ObjectResult = {
      namespace,
      names,
      isCompliant: verdict === 'found' || verdict === 'absent',
      reason: REASONS[verdict],
    };
    return { ...this.#plan, verdict, history: [result] };
  }

  #verdictOfAny(isMatched: boolean, areThere: boolean): 'found' | 'mismatch' | 'notFound' | 'unwanted' | 'absent' {
    if (complianceTypeOf(this.#template.complianceType) === 'mustnothave') {
      return isMatched ? 'unwanted' : 'absent';
    }
    return isMatched ? 'found' : areThere ? 'mismatch' : 'notFound';
  }

  /** Whether an object of any name matches the definition. No dry run helps here. */
  #matches(live: KubernetesObject): boolean {
    const options = { ...optionsOf(this.#template), zeroValueEqualsNil: true };
    const comparison = compareObject(this.#desired.definition, live, options);
    if (comparison.type === 'failed' && comparison.code !== 'incomparable') {
      // Not known to differ, which must not count as absent.
      throw new ObjectUnknown(this.#shown(comparison.message));
    }
    return comparison.type === 'compared' && comparison.matches && comparison.statusMatches;
  }
}

function settingsOf(
  { remediationAction, hasFullDiffs }: EvaluatedPolicy,
  template: ObjectTemplate,
  desired: DesiredObject,
): ObjectSettings {
  const record = diffRecord(template.recordDiff, desired.definition, desired.isSensitive);
  return {
    isEnforced: remediationAction.toLowerCase() === 'enforce' && desired.name !== '',
    recreateOption: template.recreateOption ?? 'None',
    diffRecord: record === 'InStatus' && hasFullDiffs === true ? 'Full' : record,
    isSensitive: desired.isSensitive,
  };
}

function optionsOf({ complianceType, metadataComplianceType, listKeys }: ObjectTemplate): ComparisonOptions {
  return {
    type: comparisonTypeOf(complianceType),
    ...(metadataComplianceType === undefined ? {} : { metadataType: comparisonTypeOf(metadataComplianceType) }),
    ...(listKeys === undefined ? {} : { listKeys }),
  };
}

function propertiesOf({ metadata: { uid } }: KubernetesObject): RelatedObjectProperties {
  return { createdByPolicy: false, ...(uid === undefined ? {} : { uid }) };
}

/** The object to create. A status is never written. */
function withoutStatus({ status: _status, apiVersion, kind, metadata, ...fields }: ObjectDefinition): KubernetesObject {
  return { ...fields, apiVersion, kind, metadata };
}
