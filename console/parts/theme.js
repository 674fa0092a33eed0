// Dark, light, or as the system has it. Owns the choice, which the browser keeps.

import { keepForever, onPreference, prefersDark, readForever, setTheme } from "../browser.js";
import { choice } from "../element.js";

const THEME = "godwit.theme";

export function addThemeSwitch(place, onChange) {
  let chosen = readForever(THEME) || "system";
  const apply = () => {
    setTheme(chosen === "system" ? (prefersDark() ? "dark" : "light") : chosen);
    onChange();
  };
  place.append(choice("Theme", { system: "Auto", light: "Light", dark: "Dark" }, chosen, (word) => {
    chosen = word;
    keepForever(THEME, word === "system" ? "" : word);
    apply();
  }));
  onPreference(apply);
  apply();
}
