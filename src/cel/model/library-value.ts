import { CelObject, type CelValue, EvaluationFailure, NO_SUCH_OVERLOAD } from './value.ts';

/** A value of a type of the Kubernetes libraries. `==` with another type on the right is an error. */
export abstract class LibraryValue extends CelObject {
  /** Whether `==` accepts the other value. */
  protected abstract isComparableTo(other: CelValue): boolean;

  override compareEqual(other: CelValue): boolean | EvaluationFailure {
    return this.isComparableTo(other) ? this.equals(other) : new EvaluationFailure(NO_SUCH_OVERLOAD);
  }
}
