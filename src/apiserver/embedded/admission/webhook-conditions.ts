import { AuthorizerValue, parseCelJson } from '../../../cel/index.ts';
import type { AuthorizationRequest, CelValue } from '../../../cel/index.ts';
import { MatchConditionEvaluator } from '../../../resources/match-conditions/index.ts';
import type { MatchResult } from '../../../resources/match-conditions/index.ts';
import { userInfoObject } from '../request/identities.ts';
import type { AccessAttributes, Authorizer, UserInfo } from '../request/request.ts';
import type { Invocation, ReviewedObjects } from './admission-review.ts';
import type { RequestAttributes } from './attributes.ts';
import type { ConfiguredWebhook } from './webhook.ts';

/** Evaluates the match conditions of webhooks. */
export class WebhookConditions {
  readonly #authorizer: Authorizer;
  readonly #conditions = new MatchConditionEvaluator();

  constructor(authorizer: Authorizer) {
    this.#authorizer = authorizer;
  }

  /** See {@link MatchConditionEvaluator.check}. */
  check(
    webhook: ConfiguredWebhook,
    attributes: RequestAttributes,
    invocation: Invocation,
    objects: ReviewedObjects,
  ): MatchResult {
    const bindings = this.#bindings(attributes, invocation, objects);
    return this.#conditions.check(webhook.matchConditions, webhook.ignoresFailures, bindings);
  }

  #bindings(
    attributes: RequestAttributes,
    { kind, resource }: Invocation,
    { object, oldObject }: ReviewedObjects,
  ): Record<string, CelValue> {
    const { request, subresource, namespace, name } = attributes;
    const authorizer = new AuthorizerValue(request.user, {
      authorize: (requested) => authorize(this.#authorizer, requested),
    });
    const { group, resource: plural } = attributes.resource;
    return {
      object: parseCelJson(JSON.stringify(object)),
      oldObject: parseCelJson(JSON.stringify(oldObject)),
      namespaceObject: null,
      request: parseCelJson(
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

/** Runs an authorization check of an expression. */
function authorize(authorizer: Authorizer, requested: AuthorizationRequest): { isAllowed: boolean; reason: string } {
  const user: UserInfo = { ...requested.user, groups: requested.user.groups ?? [] };
  const { verb } = requested;
  const attributes: AccessAttributes =
    requested.kind === 'path'
      ? { user, verb, path: requested.path }
      : {
          user,
          verb,
          group: requested.group,
          resource: requested.resource,
          subresource: requested.subresource,
          namespace: requested.namespace,
          name: requested.name,
        };
  const { allowed, reason } = authorizer.authorize(attributes);
  return { isAllowed: allowed, reason };
}
