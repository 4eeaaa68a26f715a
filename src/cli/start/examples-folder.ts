import { fileURLToPath } from 'node:url';

/** The examples that come with the package. */
export const EXAMPLES = fileURLToPath(new URL('../../../examples/', import.meta.url));
