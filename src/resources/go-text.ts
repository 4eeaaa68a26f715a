export { compareStrings as compareBytes, jsonText, numberText, quote as quoteText } from '../go/index.ts';
