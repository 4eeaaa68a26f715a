// Values of an installation that a user gave, so that wrong ones are a wrong use of the command.
import { installValues, ValuesError, valuesMapping } from '../../installation/index.ts';
import { usageError } from '../errors.ts';

/** {@link installValues} of what a user gave. @throws CliError */
export const givenValues: typeof installValues = (...told) => ofUser(() => installValues(...told));

/** {@link valuesMapping} of what a user gave. @throws CliError */
export const givenMapping: typeof valuesMapping = (...told) => ofUser(() => valuesMapping(...told));

function ofUser<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof ValuesError ? usageError(error.message, error.hint) : error;
  }
}
