import { TemplateError } from '../../../go/templates/index.ts';
import type { GoValue } from '../../../go/index.ts';
import { MAX_LIST_LENGTH } from './limits.ts';
import type { Rendering } from './rendering.ts';

/**
 * A list that a function makes, charged by its length.
 * @throws TemplateError `template-limit`
 */
export function boundedList<Item extends GoValue>(list: readonly Item[], { meter }: Rendering): readonly Item[] {
  checkLength(list.length);
  meter.steps(list.length);
  return list;
}

/** @throws TemplateError `template-limit` */
export function checkLength(length: number): void {
  if (length > MAX_LIST_LENGTH) {
    throw new TemplateError('template-limit', `a list has more than ${MAX_LIST_LENGTH} items`);
  }
}
