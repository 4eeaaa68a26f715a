import { expiryOf, type ExceptionTerms, labelSelector, type Selector, SelectorError } from '../../resources/index.ts';
import { isJsonObject, textOf, valueAt } from '../../values/index.ts';
import { generatedName } from '../review/admission-review.ts';
import type { Review } from '../review/admission-review.ts';
import { labelsOf } from '../values/object-labels.ts';
import { loadConditions } from './load-conditions.ts';

/** Objects with this kind are in no namespace, although requests for them name one. */
const NAMESPACE = 'Namespace';

/** An exception that is prepared for evaluation. */
export class Exception {
  readonly terms: ExceptionTerms;
  /** `namespace/name` */
  readonly name: string;
  /** Milliseconds since 1970; -Infinity for a time that cannot be read. */
  readonly expiresAt: number;
  readonly #kinds: ReadonlySet<string>;
  readonly #selector: Selector | undefined;

  /** @throws SelectorError */
  constructor(terms: ExceptionTerms) {
    const { kinds, labelSelector: selector } = terms.objects;
    this.terms = terms;
    this.name = `${terms.namespace}/${terms.name}`;
    this.expiresAt = expiryOf(terms.expiresAt) ?? -Infinity;
    this.#kinds = new Set(kinds.map(({ apiGroup, kind }) => kindKey(apiGroup, kind)));
    this.#selector = selector === undefined ? undefined : labelSelector(selector);
  }

  /** The members of a group that it is for; undefined: the whole policy. */
  membersOf(policy: string): readonly string[] | undefined {
    return this.terms.policies.find(({ id }) => id === policy)?.members;
  }

  get hasConditions(): boolean {
    return this.terms.matchConditions.length > 0;
  }

  /** Whether it is for the object of a review, conditions aside. What cannot be determined does not match. */
  selects(review: Review): boolean {
    const { admission } = review;
    if (admission === undefined || admission.namespace !== this.terms.namespace) {
      return false;
    }
    const { group, kind } = admission.kind;
    const isNamespace = group === '' && kind === NAMESPACE;
    return !isNamespace && this.#kinds.has(kindKey(group, kind)) && this.#selectsObject(review);
  }

  /** Whether all of its conditions are true. */
  meetsConditions(review: Review): boolean {
    return loadConditions()(this.terms.matchConditions, review);
  }

  #selectsObject({ object, oldObject }: Review): boolean {
    const subject = isJsonObject(object) ? object : oldObject;
    const { names } = this.terms.objects;
    // Without either, it would match everything.
    if (subject === undefined || (names === undefined && this.#selector === undefined)) {
      return false;
    }
    const hasName = names === undefined || names.some((pattern) => isNamed(nameOf(subject), pattern));
    return hasName && (this.#selector === undefined || this.#isSelected(subject));
  }

  #isSelected(object: object): boolean {
    return this.#selector?.isEmpty === false && this.#selector.matches(labelsOf(object) ?? {});
  }
}

/** The exception of some terms; undefined when they cannot be read, so that they except nothing. */
export function exceptionOf(terms: ExceptionTerms): Exception | undefined {
  try {
    return new Exception(terms);
  } catch (error) {
    if (error instanceof SelectorError) {
      return undefined;
    }
    throw error;
  }
}

function kindKey(group: string, kind: string): string {
  return `${kind}.${group}`;
}

function nameOf(object: object): string {
  return textOf(valueAt(object, 'metadata', 'name')) || generatedName(isJsonObject(object) ? object : undefined);
}

/** A generated name ends with a star, which no pattern without one matches. */
function isNamed(name: string, pattern: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
