/** Reads HTML in the thread of the test, without inlining its style sheets. */
import { type AskHtml, readHtml } from '../../src/content/read-html.js';

export const readHere: AskHtml = async (question) => readHtml(question, (html) => html);
