// Rejects webhook configurations with match conditions that do not compile. Later, such conditions would reject requests.
import { CelError, formatIssue, formatType } from '../../cel/index.ts';
import type { Environment } from '../../cel/index.ts';
import { ApiError } from '../../cluster/index.ts';
import { invalid, isJsonObject } from '../../resources/index.ts';
import { matchConditionEnvironment } from '../../resources/match-conditions/index.ts';
import type { FieldError, JsonObject } from '../../resources/index.ts';
import type { KindBehaviour, KindWrite } from './kinds/kind-behaviour.ts';

const GROUP = 'admissionregistration.k8s.io';

/** The behaviour of ValidatingWebhookConfiguration and MutatingWebhookConfiguration. */
export class WebhookConfigurationBehaviour implements KindBehaviour {
  /** Created with the first match condition. */
  #environment: Environment | undefined;

  prepare({ object, old }: KindWrite): void {
    // As in API servers, unchanged expressions are not compiled again.
    const known = new Set((old === undefined ? [] : conditionsOf(old)).map(({ expression }) => expression));
    const errors: FieldError[] = [];
    for (const { field, expression } of conditionsOf(object)) {
      const problem = known.has(expression) ? undefined : this.#problemOf(expression);
      if (problem !== undefined) {
        errors.push(invalid(field, expression, problem));
      }
    }
    if (errors.length > 0) {
      const { name } = object.metadata;
      throw ApiError.invalid({ group: GROUP, kind: object.kind }, typeof name === 'string' ? name : '', errors);
    }
  }

  stillHolds(): boolean {
    return true;
  }

  #problemOf(expression: string): string | undefined {
    this.#environment ??= matchConditionEnvironment();
    try {
      const { resultType } = this.#environment.compile(expression);
      return resultType.kind === 'bool' || resultType.kind === 'dyn'
        ? undefined
        : `must evaluate to bool but got ${formatType(resultType)}`;
    } catch (error) {
      if (error instanceof CelError) {
        const text = error.issues.length === 0 ? error.message : error.issues.map(formatIssue).join('\n');
        return `compilation failed: ${text}`;
      }
      throw error;
    }
  }
}

interface Condition {
  readonly field: string;
  readonly expression: string;
}

/** The match conditions that have an expression. Validation rejects the others. */
function conditionsOf(configuration: object): readonly Condition[] {
  return entriesOf(configuration as JsonObject, 'webhooks').flatMap((webhook) =>
    entriesOf(webhook.value, 'matchConditions').flatMap(({ value, field }): Condition[] => {
      const { expression } = value;
      return typeof expression === 'string' && expression.trim() !== ''
        ? [{ field: `${webhook.field}.${field}.expression`, expression }]
        : [];
    }),
  );
}

/** The objects of a list, with their paths. */
function entriesOf(
  object: JsonObject,
  name: string,
): readonly { readonly value: JsonObject; readonly field: string }[] {
  const list = Object.hasOwn(object, name) ? object[name] : undefined;
  return (Array.isArray(list) ? list : []).flatMap((value, index) =>
    isJsonObject(value) ? [{ value, field: `${name}[${index}]` }] : [],
  );
}
