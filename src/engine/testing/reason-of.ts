import type { Verdict } from '../verdict.ts';

/** Why a verdict is a denial: what is in it of message, causes and code. */
export function reasonOf({ message, causes, code }: Verdict): Pick<Verdict, 'message' | 'causes' | 'code'> {
  return {
    ...(message === undefined ? {} : { message }),
    ...(causes === undefined ? {} : { causes }),
    ...(code === undefined ? {} : { code }),
  };
}
