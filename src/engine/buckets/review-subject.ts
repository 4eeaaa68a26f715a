import type { Bindings } from '../../cel/index.ts';
import { CLUSTER_COLLECTORS, isPrivileged, NAMESPACE_NAME_LABEL, valueAt } from '../../resources/index.ts';
import type { Labels, RuleRequest } from '../../resources/index.ts';
import { conditionBindings } from '../review/condition-bindings.ts';
import { userNameOf } from '../review/admission-review.ts';
import type { Review, ReviewTarget } from '../review/admission-review.ts';
import { UnknownObject } from '../review/object-lookup.ts';
import type { LookupResult, ObjectLookup, ObjectReference } from '../review/object-lookup.ts';
import { labelsOf } from '../values/object-labels.ts';
import { labelText } from './rule-index.ts';

/**
 * Maximum number of labels of an object used to look up policies. An object may have as many as its request allows;
 * beyond this limit, matching every policy is faster.
 */
const MAX_LOOKED_UP_LABELS = 256;

/** The labels of a review's namespace cannot be read. */
export class NamespaceUnreadable extends Error {
  constructor(name: string, reason: string) {
    super(`the labels of the namespace ${JSON.stringify(name)} are not known: ${reason}`);
  }
}

/** A review as policies match it. Its objects are parsed on first use. */
export class ReviewSubject {
  readonly review: Review;
  readonly target: ReviewTarget;
  /** The fields that rules match. */
  readonly ruleRequest: RuleRequest;
  readonly #objects: ObjectLookup;
  #namespace: LookupResult | undefined;
  #bindings: Bindings | undefined;
  #objectLabels: readonly Labels[] | undefined;
  #isExemptFromNamespaced: boolean | undefined;
  #objectLabelTexts: ReadonlySet<string> | 'many' | undefined;

  constructor(review: Review, target: ReviewTarget, objects: ObjectLookup) {
    this.review = review;
    this.target = target;
    const { operation, subresource, namespace } = target;
    this.ruleRequest = { operation, subresource, namespace };
    this.#objects = objects;
  }

  /** The same review with another object. */
  with(review: Review): ReviewSubject {
    return new ReviewSubject(review, this.target, this.#objects);
  }

  /** Whether namespace selectors apply: they never exclude cluster-scoped objects. */
  get isInSelectedNamespace(): boolean {
    const { namespace, requestResource } = this.target;
    return namespace !== '' || requestResource.resource === 'namespaces';
  }

  /** Whether the object is itself the namespace whose labels are matched. */
  get writesNamespace(): boolean {
    const { operation, requestResource, requestSubresource } = this.target;
    return (
      requestResource.resource === 'namespaces' &&
      requestSubresource === '' &&
      (operation === 'CREATE' || operation === 'UPDATE')
    );
  }

  /** Whether no policy of a namespace sees the review, as by the match conditions of webhooks. */
  get isExemptFromNamespaced(): boolean {
    const { resource, subresource, requestResource, requestSubresource } = this.target;
    this.#isExemptFromNamespaced ??=
      isPrivileged(resource, subresource) || isPrivileged(requestResource, requestSubresource) || this.#isCollected();
    return this.#isExemptFromNamespaced;
  }

  /** Values of a label of the namespace; undefined when this thread does not have its labels. */
  namespaceValues(key: string): readonly string[] | undefined {
    const labels = key === NAMESPACE_NAME_LABEL ? nameLabel(this.target.namespace) : this.#foundLabels();
    const value = labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
    return labels === undefined ? undefined : value === undefined ? [] : [value];
  }

  /**
   * The labels that namespace selectors match.
   * @throws UnknownObject, NamespaceUnreadable.
   */
  namespaceLabels(onlyName: boolean): Labels {
    if (this.writesNamespace) {
      return labelsOf(this.review.object) ?? {};
    }
    // The API server sets this label on every namespace, and it cannot be changed.
    return onlyName ? nameLabel(this.target.namespace) : this.#readLabels();
  }

  /** Labels of the objects that have metadata. */
  objectLabels(): readonly Labels[] {
    const { review } = this;
    this.#objectLabels ??= [labelsOf(review.object), labelsOf(review.oldObject)].filter(
      (labels) => labels !== undefined,
    );
    return this.#objectLabels;
  }

  /** The labels as texts, see labelText; undefined when there are too many. */
  objectLabelTexts(): ReadonlySet<string> | undefined {
    this.#objectLabelTexts ??= textsOf(this.objectLabels());
    return this.#objectLabelTexts === 'many' ? undefined : this.#objectLabelTexts;
  }

  /** Variables of match conditions. */
  bindings(): Bindings {
    this.#bindings ??= conditionBindings(this.review);
    return this.#bindings;
  }

  /** Whether the garbage collector or the namespace controller deletes the object, or removes finalizers. */
  #isCollected(): boolean {
    const { operation } = this.target;
    const isRemoval = operation === 'DELETE' || operation === 'UPDATE';
    if (!isRemoval || !CLUSTER_COLLECTORS.includes(userNameOf(this.review.userInfo()))) {
      return false;
    }
    const before = finalizersOf(this.review.oldObject);
    const after = finalizersOf(this.review.object);
    return operation === 'DELETE' || (after.length < before.length && after.every((one) => before.includes(one)));
  }

  #foundLabels(): Labels | undefined {
    this.#namespace ??= this.#objects.find(this.#namespaceReference);
    return this.#namespace.state === 'found' ? labelsOf(this.#namespace.object) : undefined;
  }

  #readLabels(): Labels {
    const labels = this.#foundLabels();
    if (labels !== undefined) {
      return labels;
    }
    const { name } = this.#namespaceReference;
    switch (this.#namespace?.state) {
      case 'unknown':
        throw new UnknownObject(this.#namespaceReference);
      case 'absent':
        throw new NamespaceUnreadable(name, `Cannot find v1/Namespace named ${JSON.stringify(name)}`);
      case 'unreadable':
        throw new NamespaceUnreadable(name, this.#namespace.reason);
      default:
        throw new NamespaceUnreadable(name, 'the object has no metadata');
    }
  }

  get #namespaceReference(): ObjectReference {
    return { apiVersion: 'v1', kind: 'Namespace', name: this.target.namespace };
  }
}

/** `metadata.finalizers`. */
function finalizersOf(object: unknown): readonly unknown[] {
  const finalizers = valueAt(object, 'metadata', 'finalizers');
  return Array.isArray(finalizers) ? finalizers : [];
}

function nameLabel(namespace: string): Labels {
  return { [NAMESPACE_NAME_LABEL]: namespace };
}

function textsOf(objects: readonly Labels[]): ReadonlySet<string> | 'many' {
  const texts = new Set<string>();
  for (const labels of objects) {
    const keys = Object.keys(labels);
    if (keys.length > MAX_LOOKED_UP_LABELS) {
      return 'many';
    }
    for (const key of keys) {
      const value: unknown = labels[key];
      // Values that are not strings are no labels.
      if (typeof value === 'string') {
        texts.add(labelText(key, value));
      }
    }
  }
  return texts;
}
