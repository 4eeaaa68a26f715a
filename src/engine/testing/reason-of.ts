import type { Verdict } from '../verdict/verdict.ts';

/** Message, causes and code of a denial. */
export function reasonOf({ message, causes, code }: Verdict): Pick<Verdict, 'message' | 'causes' | 'code'> {
  return {
    ...(message === undefined ? {} : { message }),
    ...(causes === undefined ? {} : { causes }),
    ...(code === undefined ? {} : { code }),
  };
}
