import {
  ADMISSION_REQUEST,
  ADMISSION_REQUEST_STRUCTS,
  AUTHORIZER,
  AuthorizerValue,
  Cancellation,
  CelError,
  createEnvironment,
  DYN,
  EvaluationFailure,
  EXPRESSION_COST_LIMIT,
  MATCH_CONDITIONS_COST_BUDGET,
  parseJson,
  RESOURCE_CHECK,
  struct,
} from '../../../cel/index.ts';
import type { AuthorizationRequest, CelValue, Environment, Program } from '../../../cel/index.ts';
import { userInfoObject } from '../authentication/identities.ts';
import type { AccessAttributes, Authorizer, UserInfo } from '../request.ts';
import type { Invocation, ReviewedObjects } from './admission-review.ts';
import type { RequestAttributes } from './attributes.ts';
import type { MatchCondition, Webhook } from './webhook.ts';

/** Whether a webhook is to be called, or why that cannot be known. */
export type Matching = { readonly matches: boolean } | { readonly error: string };

/** A map, because expressions come from outside and name what they like. */
const STRUCTS = new Map(Object.entries(ADMISSION_REQUEST_STRUCTS));

type Compiled = { readonly program: Program } | { readonly error: string };

/** Evaluates the match conditions of webhooks. Expressions are compiled once, when they are first needed. */
export class MatchConditions {
  readonly #authorizer: Authorizer;
  #environment: Environment | undefined;
  /** By the list that a webhook has, which is another one when its configuration changes. */
  readonly #compiled = new WeakMap<readonly MatchCondition[], readonly Compiled[]>();

  constructor(authorizer: Authorizer) {
    this.#authorizer = authorizer;
  }

  /**
   * One that is false excludes the request, whatever the others come to. Otherwise one that failed is an error, unless the
   * webhook's failures are ignored: it is then not called.
   */
  check(webhook: Webhook, attributes: RequestAttributes, invocation: Invocation, objects: ReviewedObjects): Matching {
    const bindings = this.#bindings(attributes, invocation, objects);
    const errors = new Set<string>();
    let remaining = MATCH_CONDITIONS_COST_BUDGET;
    let isExcluded = false;
    for (const [index, compiled] of this.#programs(webhook.matchConditions).entries()) {
      const text = webhook.matchConditions[index]?.expression ?? '';
      if ('error' in compiled) {
        errors.add(compiled.error);
        continue;
      }
      const { value, cost } = compiled.program.run(bindings, { budget: EXPRESSION_COST_LIMIT });
      remaining -= cost;
      if (remaining < 0) {
        return failed(
          webhook,
          'validation failed due to running out of cost budget, no further validation rules will be run',
        );
      }
      if (value instanceof EvaluationFailure || value instanceof Cancellation) {
        errors.add(`expression '${text}' resulted in error: ${value.message}`);
      } else if (value === false) {
        isExcluded = true;
      }
    }
    if (isExcluded) {
      return { matches: false };
    }
    if (errors.size === 0) {
      return { matches: true };
    }
    const texts = [...errors];
    return failed(webhook, texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`);
  }

  #programs(conditions: readonly MatchCondition[]): readonly Compiled[] {
    const known = this.#compiled.get(conditions) ?? conditions.map(({ expression }) => this.#compile(expression));
    this.#compiled.set(conditions, known);
    return known;
  }

  #compile(expression: string): Compiled {
    try {
      this.#environment ??= matchConditionEnvironment();
      return { program: this.#environment.compile(expression) };
    } catch (error) {
      if (error instanceof CelError) {
        return { error: `compilation error: ${error.message}` };
      }
      throw error;
    }
  }

  #bindings(
    attributes: RequestAttributes,
    { kind, resource }: Invocation,
    { object, oldObject }: ReviewedObjects,
  ): Record<string, CelValue> {
    const { request, subresource, namespace, name } = attributes;
    const authorizer = new AuthorizerValue(request.user, { authorize: (asked) => answer(this.#authorizer, asked) });
    const { group, resource: plural } = attributes.resource;
    return {
      object: parseJson(JSON.stringify(object)),
      oldObject: parseJson(JSON.stringify(oldObject)),
      namespaceObject: null,
      request: parseJson(
        JSON.stringify({
          kind,
          resource,
          ...(subresource === '' ? {} : { subResource: subresource, requestSubResource: subresource }),
          requestKind: attributes.kind,
          requestResource: attributes.resource,
          ...(name === '' ? {} : { name }),
          ...(namespace === '' ? {} : { namespace }),
          operation: request.operation,
          userInfo: userInfoObject(request.user),
          dryRun: request.dryRun,
          options: request.options,
        }),
      ),
      authorizer,
      'authorizer.requestResource': authorizer.requestResource({
        group,
        resource: plural,
        subresource,
        namespace,
        name,
      }),
    };
  }
}

function failed({ ignoresFailures }: Webhook, error: string): Matching {
  return ignoresFailures ? { matches: false } : { error };
}

/** What an expression asks, asked of the cluster's authoriser. */
function answer(authorizer: Authorizer, asked: AuthorizationRequest): { isAllowed: boolean; reason: string } {
  const user: UserInfo = { ...asked.user, groups: asked.user.groups ?? [] };
  const { verb } = asked;
  const attributes: AccessAttributes =
    asked.kind === 'path'
      ? { user, verb, path: asked.path }
      : {
          user,
          verb,
          group: asked.group,
          resource: asked.resource,
          subresource: asked.subresource,
          namespace: asked.namespace,
          name: asked.name,
        };
  const { allowed, reason } = authorizer.authorize(attributes);
  return { isAllowed: allowed, reason };
}

/** What expressions of match conditions may use. */
export function matchConditionEnvironment(): Environment {
  return createEnvironment({
    variables: {
      object: DYN,
      oldObject: DYN,
      // Declared by API servers, and always null for webhooks.
      namespaceObject: DYN,
      request: struct(ADMISSION_REQUEST),
      authorizer: AUTHORIZER,
      'authorizer.requestResource': RESOURCE_CHECK,
    },
    types: {
      findStruct: (name) => (STRUCTS.has(name) ? struct(name) : undefined),
      fieldType: (name, field) => {
        const fields = STRUCTS.get(name);
        return fields !== undefined && Object.hasOwn(fields, field) ? fields[field] : undefined;
      },
      fieldNames: (name) => Object.keys(STRUCTS.get(name) ?? {}),
    },
  });
}
