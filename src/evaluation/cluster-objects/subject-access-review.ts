// Access reviews of policies (`kubernetes/can_i`), translated to SubjectAccessReviews.
import { isJsonObject } from '../../resources/index.ts';
import type { JsonObject, JsonValue } from '../../resources/index.ts';

type Translate = (value: JsonValue, path: string) => JsonValue;

const keep: Translate = (value) => value;
/** Policies give selectors as texts; Kubernetes wraps them in an object. */
const rawSelector: Translate = (value, path) => {
  if (typeof value !== 'string') {
    throw new Error(`${path}: expected text`);
  }
  return { rawSelector: value };
};

const RESOURCE_FIELDS: ReadonlyMap<string, readonly [string, Translate]> = new Map([
  ['group', ['group', keep]],
  ['name', ['name', keep]],
  ['namespace', ['namespace', keep]],
  ['resource', ['resource', keep]],
  ['subresource', ['subresource', keep]],
  ['verb', ['verb', keep]],
  ['version', ['version', keep]],
  ['field_selector', ['fieldSelector', rawSelector]],
  ['label_selector', ['labelSelector', rawSelector]],
]);
const PATH_FIELDS: ReadonlyMap<string, readonly [string, Translate]> = new Map([
  ['path', ['path', keep]],
  ['verb', ['verb', keep]],
]);
const FIELDS: ReadonlyMap<string, readonly [string, Translate]> = new Map<string, readonly [string, Translate]>([
  ['user', ['user', keep]],
  ['groups', ['groups', keep]],
  ['uid', ['uid', keep]],
  ['extra', ['extra', keep]],
  ['resource_attributes', ['resourceAttributes', (value, path) => translated(value, RESOURCE_FIELDS, path)]],
  ['non_resource_attributes', ['nonResourceAttributes', (value, path) => translated(value, PATH_FIELDS, path)]],
]);

/**
 * The `spec` of a SubjectAccessReview.
 * @throws Error for an unknown field: without it, the review would mean something else.
 */
export function accessReviewSpec(review: JsonObject): JsonObject {
  return translated(review, FIELDS, 'subject_access_review');
}

function translated(
  value: JsonValue,
  fields: ReadonlyMap<string, readonly [string, Translate]>,
  path: string,
): JsonObject {
  if (!isJsonObject(value)) {
    throw new Error(`${path}: expected an object`);
  }
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, part]) => part !== null)
      .map(([key, part]) => {
        const field = fields.get(key);
        if (field === undefined) {
          throw new Error(`${path}.${key}: unknown; expected one of ${[...fields.keys()].join(', ')}`);
        }
        const [name, translate] = field;
        return [name, translate(part, `${path}.${key}`)];
      }),
  );
}
