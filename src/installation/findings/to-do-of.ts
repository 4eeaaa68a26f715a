import { CORRECT, toDoAbout } from '../../explain/index.ts';

/** What to do about a reason in the status of a policy, in the words of `explain`. @param where in kubectl's notation */
export function toDoOf(reason: string, where: string): string {
  return toDoAbout(reason, (command) => `portcullis ${command} ${where}`) ?? CORRECT;
}
