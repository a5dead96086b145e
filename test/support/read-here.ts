/** HTML read in the test's own thread, its style sheets left where they are. */
import { type AskHtml, readHtml } from '../../src/content/read-html.js';

export const readHere: AskHtml = async (question) => readHtml(question, (html) => html);
