import { AuthorizerValue, type Bindings, type CelValue, parseCelJson } from '../../cel/index.ts';
import type { Review } from './admission-review.ts';

/**
 * Fails every authorization check. Only conditions of another revision can contain one, because policies with the
 * authorizer get their own webhook.
 */
const NO_AUTHORIZER = new AuthorizerValue(
  { username: '' },
  { authorize: () => ({ isAllowed: false, reason: '', error: 'only API servers know what a user may do' }) },
);
const NO_REQUEST_RESOURCE = NO_AUTHORIZER.requestResource({
  group: '',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
});

/** Variables of match conditions. */
export function conditionBindings(review: Review): Bindings {
  const request = parseCelJson(review.factsJson());
  const objects = new Map<string, CelValue>();
  const objectOf = (field: 'object' | 'oldObject'): CelValue => {
    const known = objects.get(field) ?? parseCelJson(review.objectJson(field) ?? 'null');
    objects.set(field, known);
    return known;
  };
  return {
    // Most conditions use only the request.
    get object() {
      return objectOf('object');
    },
    get oldObject() {
      return objectOf('oldObject');
    },
    // Always null for webhooks.
    namespaceObject: null,
    request,
    authorizer: NO_AUTHORIZER,
    'authorizer.requestResource': NO_REQUEST_RESOURCE,
  };
}
